package resync

import (
	"errors"
	"fmt"
)

const (
	// maxExamples is how many errors of a comparison are told in words; the others
	// are of the same kind, as a rule.
	maxExamples = 3
	// maxTroubles bounds what is remembered to count each error once.
	maxTroubles = 10_000
)

// troubles are the errors that a comparison met: how many different ones, and the
// first in words. A cluster that answers nothing makes one for each pod.
type troubles struct {
	met      map[string]bool
	examples []error
}

// add notes an error, once however often it is met.
func (t *troubles) add(err error) {
	text := err.Error()
	if t.met[text] || len(t.met) >= maxTroubles {
		return
	}
	if t.met == nil {
		t.met = map[string]bool{}
	}
	if t.met[text] = true; len(t.examples) < maxExamples {
		t.examples = append(t.examples, err)
	}
}

// err is nil, or says how many errors there were and names the first.
func (t *troubles) err() error {
	err := errors.Join(t.examples...)
	if more := len(t.met) - len(t.examples); more > 0 {
		return fmt.Errorf("%w\nand %d more", err, more)
	}
	return err
}

package configuration

import (
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// Conditions keep inside the API server what the webhook would find to change no
// claim. An expression that errs loses events without a word, so every field is
// optional to them: pods without status, labels or conditions exist.

// statusCondition passes a change of addresses, phase, labels or one of the two
// conditions that claims look at. Of a pod that is being deleted it also passes
// the kubelet's first look at the deletion (it writes observedGeneration): an
// eviction's own writes bypass admission, and this is the next thing seen.
const statusCondition = `object.?status.?podIP != oldObject.?status.?podIP` +
	` || object.?status.?podIPs != oldObject.?status.?podIPs` +
	` || object.?status.?phase != oldObject.?status.?phase` +
	` || object.?metadata.?labels.orValue({}) != oldObject.?metadata.?labels.orValue({})` +
	` || object.?status.?conditions.orValue([]).filter(c, c.?type.orValue("") in ["Ready", "ContainersReady"] && c.?status.orValue("") == "True").map(c, c.type)` +
	` != oldObject.?status.?conditions.orValue([]).filter(c, c.?type.orValue("") in ["Ready", "ContainersReady"] && c.?status.orValue("") == "True").map(c, c.type)` +
	` || (object.?metadata.?deletionTimestamp.hasValue() && object.?status.?observedGeneration != oldObject.?status.?observedGeneration)`

// updateCondition passes a change of labels or allowed annotations, and the last
// look at a pod that is being deleted: the removal of its finalizers.
func updateCondition(annotations podevent.AllowList) string {
	parts := []string{
		`object.?metadata.?labels.orValue({}) != oldObject.?metadata.?labels.orValue({})`,
		`object.?metadata.?deletionTimestamp.hasValue()`,
	}
	for _, a := range annotations {
		if strings.HasSuffix(a, "*") {
			// A prefix can't be compared cheaply; the webhook looks again.
			parts = append(parts, `object.?metadata.?annotations.orValue({}) != oldObject.?metadata.?annotations.orValue({})`)
			continue
		}
		key := strconv.Quote(a)
		parts = append(parts, `object.?metadata.?annotations[?`+key+`] != oldObject.?metadata.?annotations[?`+key+`]`)
	}
	return strings.Join(parts, " || ")
}

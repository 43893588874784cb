package functions

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is where longer lines are cut: Lambda's log events end there too.
const maxLine = 256 << 10

// A Line is one line that a function printed, without its line end. Text is
// valid only during the call that hands it over.
type Line struct {
	Function string
	Instance string
	Text     []byte
}

// copyLines reads r to its end, writes all of it to log, and hands on each line
// for which keep is true. Reading goes on whatever becomes of the log: a full
// pipe would stop the function.
func copyLines(r io.Reader, log io.Writer, keep func([]byte) bool, hand func([]byte)) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			_, _ = log.Write(line)
			if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 && hand != nil && keep(text) {
				hand(text)
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// ofFunction tells a function's own output from the emulator's records in it.
func ofFunction(line []byte) bool {
	for _, record := range []string{"START RequestId: ", "END RequestId: ", "REPORT RequestId: "} {
		if bytes.HasPrefix(line, []byte(record)) {
			return false
		}
	}
	return true
}

package mcpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// events reads the data of server-sent events. It needs no bound of its own: the body below it has one.
type events struct{ r *bufio.Reader }

func newEvents(body io.Reader) *events { return &events{r: bufio.NewReaderSize(body, 16<<10)} }

// next returns the data of the next event that has some. An event counts once its empty line has come; one cut short by the end of
// the stream does not. A line ends with LF or CRLF; a lone CR, which the format also allows, would be inside a JSON text invalid.
func (e *events) next() ([]byte, error) {
	var data []byte
	some := false
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if some {
				return data, nil
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue // other fields and comments
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if some {
			data = append(append(data, '\n'), value...)
		} else {
			data, some = value, true
		}
	}
}

// line returns one line without its end, in memory of its own.
func (e *events) line() ([]byte, error) {
	var out []byte
	for {
		part, err := e.r.ReadSlice('\n')
		out = append(out, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return bytes.TrimSuffix(out[:len(out)-1], []byte("\r")), nil
	}
}

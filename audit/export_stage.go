package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
)

// stageBytes is how much of one aggregate waits in memory; more goes to a temporary
// file.
const stageBytes = 8 << 20

// stage holds the lines of one aggregate until it is known that they are all of it.
type stage struct {
	memory bytes.Buffer
	file   *os.File // nil: all is in memory
	lines  int64
}

func (s *stage) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.memory.Write(append(b, '\n'))
	s.lines++
	if s.memory.Len() < stageBytes {
		return nil
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "skein-export-"); err != nil {
			return fmt.Errorf("a place for a long thread: %w", err)
		}
	}
	if _, err := s.memory.WriteTo(s.file); err != nil {
		return fmt.Errorf("a place for a long thread: %w", err)
	}
	return nil
}

// writeTo writes the lines, and forgets them.
func (s *stage) writeTo(w *lineWriter) error {
	defer s.clear()
	var from io.Reader = &s.memory
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("reading a long thread again: %w", err)
		}
		from = io.MultiReader(s.file, &s.memory)
	}
	return w.copy(from, s.lines)
}

// clear forgets the lines.
func (s *stage) clear() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
		s.file = nil
	}
	if s.memory.Cap() > 2*stageBytes { // what one large commit needed
		s.memory = bytes.Buffer{}
	}
	s.memory.Reset()
	s.lines = 0
}

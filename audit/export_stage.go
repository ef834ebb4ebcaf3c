package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
)

// stageBytes is how much of one aggregate is buffered in memory; more goes to a temporary
// file.
const stageBytes = 8 << 20

// stage buffers the lines of one aggregate until all of them were read.
type stage struct {
	memory bytes.Buffer
	file   *os.File // nil: everything is in memory
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
			return fmt.Errorf("buffer a long thread in a temporary file: %w", err)
		}
	}
	if _, err := s.memory.WriteTo(s.file); err != nil {
		return fmt.Errorf("buffer a long thread in a temporary file: %w", err)
	}
	return nil
}

// writeTo writes the lines, and clears them.
func (s *stage) writeTo(w *lineWriter) error {
	defer s.clear()
	var from io.Reader = &s.memory
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read a long thread from its temporary file: %w", err)
		}
		from = io.MultiReader(s.file, &s.memory)
	}
	return w.copy(from, s.lines)
}

// clear drops the lines.
func (s *stage) clear() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
		s.file = nil
	}
	if s.memory.Cap() > 2*stageBytes { // grown for one large commit
		s.memory = bytes.Buffer{}
	}
	s.memory.Reset()
	s.lines = 0
}

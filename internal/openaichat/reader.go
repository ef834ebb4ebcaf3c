package openaichat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is one conversation of a file, or what is wrong with it.
type Record struct {
	Line         int // where it begins, from 1
	Conversation *Conversation
	Err          error
}

// Read yields the conversations of a file one after another: JSON Lines, or one JSON array. It
// ends early only if the rest of the file cannot be read; the last record then has the error.
// Fields to ignore are as of Parse.
func Read(r io.Reader, ignore ...string) iter.Seq[Record] {
	parse := func(raw []byte) (*Conversation, error) { return Parse(raw, ignore...) }
	return func(yield func(Record) bool) {
		in := bufio.NewReaderSize(r, 1<<16)
		if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
			_, _ = in.Discard(3) // it was peeked at
		}
		line := 1
		for {
			c, err := in.ReadByte()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Record{Line: line, Err: err})
				return
			case c == '\n':
				line++
				continue
			case c == ' ' || c == '\t' || c == '\r':
				continue
			}
			_ = in.UnreadByte() // it was just read
			if c == '[' {
				readArray(in, line, parse, yield)
			} else {
				readLines(in, line, parse, yield)
			}
			return
		}
	}
}

// parser reads one conversation.
type parser func(raw []byte) (*Conversation, error)

// readLines reads one conversation a line.
func readLines(in *bufio.Reader, line int, parse parser, yield func(Record) bool) {
	for ; ; line++ {
		raw, err := readLine(in)
		last := errors.Is(err, io.EOF)
		if err != nil && !last && !errors.Is(err, errTooLong) {
			yield(Record{Line: line, Err: err})
			return
		}
		rec := Record{Line: line}
		switch {
		case errors.Is(err, errTooLong):
			rec.Err = tooLong()
		case blank(raw):
			if last {
				return
			}
			continue
		default:
			rec.Conversation, rec.Err = parse(raw)
		}
		if !yield(rec) || last {
			return
		}
	}
}

// errTooLong says that a line is over MaxBytes. It was passed over.
var errTooLong = errors.New("the line is too long")

// readLine reads a line, but never more than MaxBytes of it into memory.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) > MaxBytes {
			long, line = true, nil
		}
		if !long {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, errTooLong
		case long && errors.Is(err, io.EOF):
			return nil, errTooLong // the end is met at the next line
		}
		return line, err
	}
}

func blank(raw []byte) bool {
	for _, c := range raw {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// readArray reads the elements of an array. What is no JSON ends it: nobody can
// say where the next conversation begins.
func readArray(in *bufio.Reader, line int, parse parser, yield func(Record) bool) {
	lines := &lineReader{in: in, line: line}
	// What these allow, Parse refuses, for one conversation and not for the file.
	dec := jsontext.NewDecoder(lines, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		yield(Record{Line: line, Err: oneLine(err)})
		return
	}
	for {
		lines.limit = dec.InputOffset() + MaxBytes
		if dec.PeekKind() == ']' {
			break
		}
		raw, err := dec.ReadValue()
		at := lines.at(dec.InputOffset() - int64(len(raw)))
		switch {
		case errors.Is(err, errTooLong):
			yield(Record{Line: at, Err: fmt.Errorf("%w; the rest of the file was not read", tooLong())})
			return
		case err != nil:
			var syntax *jsontext.SyntacticError
			if errors.As(err, &syntax) {
				at = lines.at(syntax.ByteOffset)
			}
			yield(Record{Line: at, Err: fmt.Errorf("%w; the rest of the file was not read", oneLine(err))})
			return
		}
		rec := Record{Line: at}
		rec.Conversation, rec.Err = parse(raw)
		if !yield(rec) {
			return
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		yield(Record{Line: lines.at(dec.InputOffset()), Err: oneLine(err)})
		return
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		yield(Record{Line: lines.at(dec.InputOffset()), Err: errors.New("something follows the array; it was not read")})
	}
}

// lineReader knows the line of each byte that was not yet asked about, and ends
// before too much is read for one value.
type lineReader struct {
	in    io.Reader
	line  int     // of the last place that was asked about
	read  int64   // bytes so far
	ends  []int64 // of the lines after that place
	limit int64
}

// slack is what a decoder may read ahead of the value that it reads.
const slack = 1 << 20

func (l *lineReader) Read(p []byte) (int, error) {
	if l.read > l.limit+slack {
		return 0, errTooLong
	}
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at returns the line of an offset. Offsets must increase from call to call.
func (l *lineReader) at(offset int64) int {
	for len(l.ends) > 0 && l.ends[0] < offset {
		l.line++
		l.ends = l.ends[1:]
	}
	return l.line
}

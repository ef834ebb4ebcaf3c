package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// FileError is a fault in an exported file, with its line. Nothing was written to a log,
// unless the file was changed during the import.
type FileError struct {
	Line    int64 // from 1
	Problem string
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// FileReport describes a verified file.
type FileReport struct {
	Header   FileHeader `json:"header"`
	Manifest Manifest   `json:"manifest"`
	Key      string     `json:"key,omitzero"` // who signed it; empty: it is unsigned
}

// ReadFile reads a file to its end and checks it: its form, each commit's chain, versions,
// schema, machines and links, where each thread ends, and the manifest's counts, digest and
// signature. It holds one line in memory, and of one thread the ids and states of its
// entities. The error is a *FileError, or a read error.
//
// An event of an unknown type is accepted: a newer program wrote it.
func ReadFile(r io.Reader, validator *schema.Validator, o ReadOptions) (FileReport, error) {
	return readFile(r, validator, o, StageCheck, ignoring{})
}

// fileVisitor receives the lines of a file. An error stops the reading.
type fileVisitor interface {
	commit(line int64, a aggregate, c *events.Commit) error
	end(line int64, a aggregate, e FileEnd) error
	content(line int64, c FileContent) error
}

// ignoring ignores them.
type ignoring struct{}

func (ignoring) commit(int64, aggregate, *events.Commit) error { return nil }
func (ignoring) end(int64, aggregate, FileEnd) error           { return nil }
func (ignoring) content(int64, FileContent) error              { return nil }

func readFile(r io.Reader, validator *schema.Validator, o ReadOptions, stage string, to fileVisitor) (FileReport, error) {
	f := &fileReader{from: bufio.NewReaderSize(r, 64<<10), sum: sha256.New(), options: o, stage: stage, to: to}
	f.judge = newJudge(validator, func(found Finding) {
		if f.found == "" && found.Kind != KindUnknown {
			f.found = string(found.Kind) + ": " + found.Detail
		}
	})
	for f.report.Manifest.Digest == "" {
		if err := f.line(); err != nil {
			return f.report, err
		}
	}
	return f.report, nil
}

// fileReader reads one file.
type fileReader struct {
	from    *bufio.Reader
	sum     hash.Hash
	options ReadOptions
	stage   string
	to      fileVisitor
	judge   *judge
	found   string // the judge's first finding

	n        int64 // the current line
	names    events.Names
	open     FileEnd // the expected end of the current thread
	at       aggregate
	threads  bool     // a thread was read: other aggregates come before
	counted  Manifest // the counts so far
	bringing incoming
	report   FileReport
}

func (f *fileReader) refuse(format string, args ...any) error {
	return &FileError{Line: f.n, Problem: fmt.Sprintf(format, args...)}
}

// maxLine bounds a line: a commit's body with every byte escaped, and the rest.
const maxLine = 6*events.MaxCommitBytes + 64<<10

// read reads the next line, without its end.
func (f *fileReader) read() ([]byte, error) {
	f.n++
	var line []byte
	for {
		part, err := f.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, f.refuse("it has more than %d bytes, which no commit has", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, f.refuse("the file ends here, without its manifest: it was cut off")
		case err != nil:
			return nil, fmt.Errorf("read file: %w", err)
		}
		return line[:len(line)-1], nil
	}
}

// line reads and checks one line.
func (f *fileReader) line() error {
	line, err := f.read()
	if err != nil {
		return err
	}
	if f.n > 1 && bytes.HasPrefix(line, []byte(`{"manifest":`)) {
		return f.last(line)
	}
	f.sum.Write(line)
	f.sum.Write([]byte{'\n'})
	f.counted.Lines++
	f.counted.Bytes += int64(len(line)) + 1
	if f.options.Progress != nil && f.n%tellEvery == 0 {
		f.options.Progress(Progress{Stage: f.stage, Done: f.counted.Bytes, Of: f.options.size, Commits: int(f.counted.Commits + f.open.Commits)})
	}
	switch {
	case f.n == 1:
		return f.header(line)
	case bytes.HasPrefix(line, []byte(`{"content":`)):
		return f.content(line)
	case f.contentOpen():
		return f.refuse("the end of the content %s is missing", f.bringing.at.Content)
	case bytes.HasPrefix(line, []byte(`{"seq":`)):
		return f.commit(line)
	case bytes.HasPrefix(line, []byte(`{"end":`)):
		return f.end(line)
	}
	return f.refuse("it is no line of an export")
}

// decode decodes a line strictly.
func (f *fileReader) decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v, json.RejectUnknownMembers(true)); err != nil {
		return f.refuse("it cannot be read: %v", err)
	}
	return nil
}

func (f *fileReader) header(line []byte) error {
	h := &f.report.Header
	if !bytes.HasPrefix(line, []byte(`{"file":"`+fileName+`"`)) {
		return f.refuse("it is not the first line of an export of Skein")
	}
	if err := f.decode(line, h); err != nil {
		return err
	}
	f.names = events.Names{Prefix: h.Prefix}
	switch {
	case h.Format != FileFormat:
		return f.refuse("its format is %d; this program reads %d", h.Format, FileFormat)
	case f.names.Validate() != nil:
		return f.refuse("%v", f.names.Validate())
	case f.options.Tenant != "" && h.Tenant == "":
		return f.refuse("the file is of all tenants, and only %s was asked for", f.options.Tenant)
	case f.options.Tenant != "" && h.Tenant != f.options.Tenant:
		return f.refuse("the file is of tenant %.80q, and not of %s; the tenant stands in every event, so it cannot be another's", h.Tenant, f.options.Tenant)
	}
	return nil
}

// subject parses the subject of a line.
func (f *fileReader) subject(subject string) (aggregate, error) {
	tenant, id, ok := f.names.ParseLog(subject)
	switch {
	case !ok || !events.ValidTenant(tenant) || !validAggregate(id):
		return aggregate{}, f.refuse("%.120q is not a subject of the log", subject)
	case f.report.Header.Tenant != "" && tenant != f.report.Header.Tenant:
		return aggregate{}, f.refuse("it is of tenant %s, and the file of %s", tenant, f.report.Header.Tenant)
	case f.threads && !events.IsThread(id):
		return aggregate{}, f.refuse("%s is no thread, and comes after one: lines were reordered", id)
	}
	return aggregate{tenant, id}, nil
}

func (f *fileReader) commit(line []byte) error {
	var m FileCommit
	if err := f.decode(line, &m); err != nil {
		return err
	}
	if f.report.Header.Chains {
		return f.refuse("a commit, in a file that holds the ends of threads only")
	}
	if f.open.Commits == 0 {
		a, err := f.subject(m.Subject)
		if err != nil {
			return err
		}
		f.judge.begin(a)
		f.at, f.open.End, f.threads = a, m.Subject, events.IsThread(a.id)
	}
	body := m.Base64
	if m.Body != "" {
		body = []byte(m.Body)
	}
	version, err := strconv.ParseInt(m.Version, 10, 64)
	switch {
	case m.Subject != f.open.End:
		return f.refuse("it is of %.120q, and the end of %s is missing", m.Subject, f.open.End)
	case m.Seq <= f.open.Seq || m.Seq > f.report.Header.To:
		return f.refuse("its sequence, %d, does not follow %d: lines were reordered", m.Seq, f.open.Seq)
	case m.Type != events.BatchContentType:
		return f.refuse("its content type is %.80q, and not %s", m.Type, events.BatchContentType)
	case err != nil:
		return f.refuse("its version is %.40q", m.Version)
	}
	c, err := events.DecodeCommit(f.at.tenant, f.at.id, m.Seq, version, m.Chain, body)
	if err != nil {
		return f.refuse("%v", err)
	}
	if f.judge.commit(c); f.found != "" {
		return f.refuse("commit %d of %s/%s: %s", m.Seq, f.at.tenant, f.at.id, f.found)
	}
	f.bringing.naming.commit(c)
	f.open.Commits++
	f.open.Seq, f.open.Version, f.open.Chain = m.Seq, m.Version, m.Chain
	return f.to.commit(f.n, f.at, c)
}

func (f *fileReader) end(line []byte) error {
	var e FileEnd
	if err := f.decode(line, &e); err != nil {
		return err
	}
	if f.report.Header.Chains {
		a, err := f.subject(e.End)
		if err != nil {
			return err
		}
		f.at, f.threads, f.open = a, events.IsThread(a.id), e
	}
	if _, err := strconv.ParseInt(e.Version, 10, 64); err != nil || e != f.open || e.Commits < 1 {
		return f.refuse("it is not the end of what stands before it: lines were left out")
	}
	f.counted.Commits += e.Commits
	f.counted.LastSeq = max(f.counted.LastSeq, e.Seq)
	if events.IsThread(f.at.id) {
		f.counted.Threads++
	} else {
		f.counted.Others++
	}
	f.open = FileEnd{}
	if err := f.named(); err != nil {
		return err
	}
	return f.to.end(f.n, f.at, e)
}

// last checks the manifest, and that nothing follows it.
func (f *fileReader) last(line []byte) error {
	var l FileLast
	var m Manifest
	if err := f.decode(line, &l); err != nil {
		return err
	}
	if err := f.decode(l.Manifest, &m); err != nil {
		return err
	}
	f.counted.Digest = hex.EncodeToString(f.sum.Sum(nil))
	switch {
	case f.open.Commits > 0:
		return f.refuse("the end of %s is missing", f.open.End)
	case f.contentOpen():
		return f.refuse("the end of the content %s is missing", f.bringing.at.Content)
	case len(f.bringing.given) > 0:
		return f.refuse("there is a content that no thread names")
	case m.Digest != f.counted.Digest:
		return f.refuse("the digest of the lines before it is %s, and the manifest says %.80q: the file was altered", f.counted.Digest, m.Digest)
	case m != f.counted:
		return f.refuse("the manifest counts other lines, threads or commits than there are")
	}
	if err := l.signed(f.options.Key); err != nil {
		return f.refuse("%v", err)
	}
	if _, err := f.from.ReadByte(); !errors.Is(err, io.EOF) {
		return f.refuse("something follows the manifest")
	}
	f.report.Manifest, f.report.Key = m, l.Key
	return nil
}

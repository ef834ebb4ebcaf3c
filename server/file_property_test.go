package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// model is a file system in memory, as simple as can be: files hold their bytes,
// directories hold nil.
type model map[string][]byte

func (m model) isDir(p string) bool {
	data, there := m[p]
	return p == "/" || there && data == nil
}

func (m model) isFile(p string) bool { return m[p] != nil }

// parents makes the directories on the way, or says that a file is there.
func (m model) parents(p string) bool {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if m.isFile(dir) {
			return false
		}
	}
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		m[dir] = nil
	}
	return true
}

func (m model) in(dir string) []string {
	var names []string
	for p := range m {
		if path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

func (m model) write(p string, data []byte) bool {
	if m.isDir(p) || !m.parents(p) {
		return false
	}
	m[p] = append([]byte{}, data...)
	return true
}

func (m model) unlink(p string) bool {
	if m.isDir(p) {
		return false
	}
	delete(m, p)
	return true
}

func (m model) mkdir(p string) bool {
	if m.isFile(p) || p != "/" && !m.parents(p) {
		return false
	}
	if p != "/" {
		m[p] = nil
	}
	return true
}

func (m model) rmdir(p string) bool {
	if p == "/" || m.isFile(p) || len(m.in(p)) > 0 {
		return false
	}
	delete(m, p)
	return true
}

// Random operations give the same answers as the model, also after a restart in
// the middle. SA-95, SA-112, SA-115, SA-116, SA-117, SA-118, SA-119.
func TestFiles_MatchModel(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	f := w.newFiles()
	thread := must(f.MkdirFile(t.Context(), "/a"))(t).ThreadID
	m := model{"/a": nil}
	names := []string{"a", "b", "ä", "c.txt"}
	somewhere := func() string {
		p := ""
		for range 1 + r.IntN(3) {
			p += "/" + names[r.IntN(len(names))]
		}
		return p
	}
	const steps = 400
	for step := range steps {
		if step == steps/2 {
			w.stop()
			w.start("acme")
			f = must(w.UpToDate(t.Context()))(t).Files(thread)
		}
		p := somewhere()
		what, want := "", false
		var err error
		switch r.IntN(9) {
		case 0, 1, 2:
			size := []int{0, 3, 5000, events.InlineFileBytes + 1}[r.IntN(4)]
			data := noise(size, byte(r.IntN(5)))
			what, want = "write", m.write(p, data)
			_, err = f.WriteFile(t.Context(), p, data, "", client.WriteFileOptions{})
		case 3:
			what, want = "unlink", m.unlink(p)
			err = f.UnlinkFile(t.Context(), p)
		case 4:
			what, want = "mkdir", m.mkdir(p)
			_, err = f.MkdirFile(t.Context(), p)
		case 5:
			what, want = "rmdir", m.rmdir(p)
			err = f.RmdirFile(t.Context(), p)
		case 6:
			what, want = "read", !m.isDir(p)
			var data []byte
			if data, err = f.ReadFile(t.Context(), p); !bytes.Equal(data, m[p]) || (data != nil) != m.isFile(p) {
				t.Fatalf("step %d: %s has %d bytes, not %d", step, p, len(data), len(m[p]))
			}
		case 7:
			what, want = "readdir", m.isDir(p)
			var list *events.FileList
			if list, err = f.ReaddirFile(t.Context(), p); err == nil && !slices.Equal(namesIn(list), m.in(p)) {
				t.Fatalf("step %d: %s holds %v, not %v", step, p, namesIn(list), m.in(p))
			}
		default:
			what, want = "stat", true
			var record *events.FileRecord
			record, err = f.StatFile(t.Context(), p)
			data, there := m[p]
			if (record != nil) != there || there && (record.IsDirectory != (data == nil) || record.Size != int64(len(data)) || data != nil && record.Digest != sum(data)) {
				t.Fatalf("step %d: %s is %+v, and %d bytes, %v", step, p, record, len(data), there)
			}
		}
		if (err == nil) != want {
			t.Fatalf("step %d: %s %s: %v; the model says %v", step, what, p, err, want)
		}
		if code := events.AsError(err).Code; err != nil && code != events.IllegalTransition && code != events.NotFound {
			t.Fatalf("step %d: %s %s: %v", step, what, p, err)
		}
	}
	sameAsModel(t, f, m)
}

func namesIn(list *events.FileList) []string {
	var names []string
	for _, e := range list.Entries {
		names = append(names, e.Name)
	}
	return names
}

// sameAsModel compares everything.
func sameAsModel(t *testing.T, f *client.Files, m model) {
	t.Helper()
	var want events.FileStats
	var paths []string
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if m.isDir(p) {
			want.DirectoryCount++
			continue
		}
		want.FileCount++
		want.TotalSize += int64(len(m[p]))
		paths = append(paths, p)
		if got := must(f.ReadFile(t.Context(), p))(t); !bytes.Equal(got, m[p]) {
			t.Errorf("%s: %d bytes, not %d", p, len(got), len(m[p]))
		}
	}
	if got := must(f.GetFileStats(t.Context()))(t); *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	if got := must(f.FindFiles(t.Context(), "**"))(t); !slices.Equal(got.Paths, paths) {
		t.Errorf("%v, want %v", got.Paths, paths)
	}
}

// Many write one path concurrently, small and large, while others read: one wins, each
// reply is true, and no reader sees a mixture. With an expected digest exactly one of
// those that saw the same content succeeds.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	f := w.newFiles()
	ctx := t.Context()
	contents := map[string]bool{}
	var all [][]byte
	for i := range 12 {
		data := noise([]int{100, events.InlineFileBytes + 77, 2 << 20}[i%3], byte(i))
		all = append(all, data)
		contents[sum(data)] = true
	}
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	var mu sync.Mutex
	told := map[int64]string{} // versions and digests
	for range 3 {
		readers.Go(func() {
			mine := w.Files(must(f.StatFile(ctx, "/"))(t).ThreadID)
			for {
				select {
				case <-done:
					return
				default:
				}
				data, err := mine.ReadFile(ctx, "/f")
				if err != nil || data != nil && !contents[sum(data)] {
					t.Errorf("a reader saw %d bytes that no writer wrote: %v", len(data), err)
					return
				}
			}
		})
	}
	for _, data := range all {
		writers.Go(func() {
			record, err := f.WriteFile(ctx, "/f", data, "", client.WriteFileOptions{})
			if err != nil || record.Digest != sum(data) {
				t.Errorf("%+v %v", record, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			told[record.Version] = record.Digest
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	now := must(f.StatFile(ctx, "/f"))(t)
	if len(told) != len(all) {
		t.Errorf("%d writers were told %d versions", len(all), len(told))
	}
	newest := slices.Max(slices.Collect(maps.Keys(told)))
	if told[newest] != now.Digest {
		t.Errorf("the last reply was %.8s at %d, and the file is %.8s", told[newest], newest, now.Digest)
	}
	for version, digest := range told {
		if data := must(f.ReadFileAt(ctx, "/f", version))(t); sum(data) != digest {
			t.Errorf("version %d has not what was told", version)
		}
	}
	var won, lost int
	for i := range 8 {
		writers.Go(func() {
			_, err := f.WriteFile(ctx, "/f", fmt.Appendf(nil, "writer %d", i), "", client.WriteFileOptions{ExpectedDigest: &now.Digest})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case events.AsError(err).Code == events.VersionConflict:
				lost++
			default:
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if won != 1 || lost != 7 {
		t.Errorf("%d won and %d lost", won, lost)
	}
}

// SA-95: nothing of one thread or tenant is reachable through another: by no path, and
// not by a digest. Every odd path has an answer.
func TestIsolationOfFiles(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	ctx := t.Context()
	mine, theirs := w.newFiles(), w.newFiles()
	secret := noise(events.InlineFileBytes+9, 42)
	record := must(mine.WriteFile(ctx, "/secret", secret, "", client.WriteFileOptions{}))(t)
	id := record.ThreadID
	for _, p := range []string{
		"../" + id + "/secret", "/../secret", "..", "/" + id + "/../secret", `\secret`, `..\secret`, "/secret\x00", "\x00", "/a\nb", "/\u202esecret",
		strings.Repeat("x", 10_000), "/" + strings.Repeat("y/", 5000), "./secret",
	} {
		_, err := theirs.WriteFile(ctx, p, []byte("x"), "", client.WriteFileOptions{})
		refused(t, err, events.InvalidRequest)
		_, err = theirs.ReadFile(ctx, p)
		refused(t, err, events.InvalidRequest)
		_, err = theirs.MkdirFile(ctx, p)
		refused(t, err, events.InvalidRequest)
		refused(t, theirs.UnlinkFile(ctx, p), events.InvalidRequest)
	}
	for _, p := range []string{"/secret", "//secret", "/SECRET", "/" + id + "/secret", "/acme." + id + "/secret", "*", ">", "/acme/" + record.Digest, "%2e%2e/secret"} {
		if data, err := theirs.ReadFile(ctx, p); data != nil || err != nil {
			t.Errorf("%s: %d bytes, %v", p, len(data), err)
		}
	}
	// One form, one file; case makes two.
	must(theirs.WriteFile(ctx, "/cafe\u0301", []byte("1"), "", client.WriteFileOptions{}))(t)
	must(theirs.WriteFile(ctx, "//Caf\u00e9/", []byte("2"), "", client.WriteFileOptions{}))(t)
	if data := must(theirs.ReadFile(ctx, "caf\u00e9"))(t); string(data) != "1" {
		t.Errorf("%q", data)
	}
	if got := must(theirs.FindFiles(ctx, "**"))(t).Paths; !slices.Equal(got, []string{"/Caf\u00e9", "/caf\u00e9"}) {
		t.Errorf("%q", got)
	}
	// A digest grants no access: not in another thread, not for another tenant.
	nc := w.plain()
	for _, c := range []struct{ tenant, thread string }{{"acme", must(theirs.StatFile(ctx, "/"))(t).ThreadID}, {"globex", id}, {"acme", "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"}} {
		for _, direct := range []bool{false, true} {
			body := fmt.Appendf(nil, `{"threadId":%q,"path":"/secret","digest":%q,"piece":0,"direct":%v}`, c.thread, record.Digest, direct)
			answer := must(nc.RequestWithContext(ctx, "skein.file."+c.tenant+".content.get", body))(t)
			if answer.Header.Get(events.HeaderError) != string(events.NotFound) || bytes.Contains(answer.Data, secret[:64]) {
				t.Errorf("%+v: %v, %d bytes", c, answer.Header, len(answer.Data))
			}
		}
	}
	// Nor does file.write accept one.
	answer := must(nc.RequestWithContext(ctx, "skein.cmd.acme.file.write", fmt.Appendf(nil, `{"threadId":%q,"data":{"path":"/x","digest":%q}}`, id, record.Digest)))(t)
	if answer.Header.Get(events.HeaderError) != string(events.InvalidRequest) {
		t.Errorf("%s", answer.Data)
	}
	// Another tenant does not see the thread at all.
	other := w.as("globex").Files(id)
	_, err := other.ReadFile(ctx, "/secret")
	refused(t, err, events.NotFound)
	_, err = other.WriteFile(ctx, "/x", secret, "", client.WriteFileOptions{})
	refused(t, err, events.NotFound)
	_, err = other.GrepFiles(ctx, "x")
	refused(t, err, events.NotFound)
	// Deleting the thread deletes all of it.
	if _, err := w.Send(ctx, id, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	_, err = must(w.UpToDate(ctx))(t).Files(id).ReadFile(ctx, "/secret")
	refused(t, err, events.NotFound)
}

// The content of a file that is written over while it is read is read to its
// end as it was.
func TestReadWhileWrittenOver(t *testing.T) {
	t.Parallel()
	w := startWorld(t, store(t), "acme")
	f := w.newFiles()
	data := noise(8<<20, 1)
	must(f.WriteFile(t.Context(), "/f", data, "", client.WriteFileOptions{}))(t)
	var got []byte
	for chunk, err := range must(f.ReadFileStream(t.Context(), "/f"))(t) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Index == 1 {
			must(f.WriteFile(t.Context(), "/f", noise(8<<20, 2), "", client.WriteFileOptions{}))(t)
		}
		got = append(got, chunk.Data...)
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes, and not those that stood there", len(got))
	}
}

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/internal/eventtext"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/schema"
)

// exporting holds the options of an export.
type exporting struct {
	*remote
	options    audit.ExportOptions
	everyone   bool
	sign, file string
}

func (a *app) auditExport() *cobra.Command {
	x := &exporting{remote: &remote{}}
	cmd := &cobra.Command{
		Use: "export [THREAD...]", Short: "Export the log's commits to a file, as stored, with a manifest",
		Long: "Export commits as JSON Lines, with subjects, sequences and chains, and the exact bytes of each: of some threads,\n" +
			"of the tenant, or of all tenants. The last line is a manifest with the digest of the lines before it, signed with\n" +
			"an NKey if --sign names the file of a seed. --chains writes only the last chain value of each thread, which is small and all\n" +
			"that skein audit verify --against needs. --contents adds the contents of files; without it they are not in\n" +
			"the file, and skein backup copies them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.oneOrAll(x.everyone, args); err != nil {
				return err
			}
			if !x.everyone {
				x.options.Tenant = x.Tenant
			}
			if x.options.Chains && x.options.Contents {
				return cli.WrongUsage("--chains exports no contents: remove --contents")
			}
			return a.export(cmd.Context(), x, args)
		},
	}
	x.logFlags(cmd)
	x.domainFlag(cmd)
	f := cmd.Flags()
	x.orAllTenants(cmd, &x.everyone, "all tenants")
	f.BoolVar(&x.options.Chains, "chains", false, "only the last chain value of each thread, and no commits")
	f.BoolVar(&x.options.Contents, "contents", false, "also the contents of files")
	f.StringVar(&x.sign, "sign", "", "sign the manifest with the NKey seed in this file")
	f.StringVarP(&x.file, "output", "o", "", "file to create, which must not exist; default standard output")
	return cmd
}

func (a *app) export(ctx context.Context, x *exporting, refs []string) (err error) {
	if x.sign != "" {
		seed, err := os.ReadFile(x.sign)
		if err != nil {
			return fmt.Errorf("read the seed: %w", err)
		}
		signer, err := audit.NewSigner(seed)
		clear(seed)
		if err != nil {
			return err
		}
		defer signer.Wipe()
		x.options.Signer = signer
	}
	log, closeLog, err := x.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	if x.options.Threads, err = x.resolve(ctx, log, refs); err != nil {
		return err
	}
	out, finish, err := a.createExport(x.file)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()
	bar := a.Progress()
	x.options.Progress = auditing(bar)
	x.options.Program = cli.Version()
	x.options.Absent = func(tenant, digest string, why error) {
		bar.Clear()
		a.Hint("the content %s of tenant %s is skipped: %v", digest, tenant, why)
	}
	manifest, err := audit.Export(ctx, log, out, x.options)
	bar.Clear()
	switch {
	case err != nil:
		return err
	case x.JSON && x.file != "":
		return errors.Join(a.PrintJSON(manifest), absent(manifest.Absent))
	}
	a.Hint("%s, %s, %s, SHA-256 %s", cli.Count(manifest.Threads, "thread"), cli.Count(manifest.Commits, "commit"), cli.Count(manifest.Bytes, "byte"), manifest.Digest)
	switch {
	case x.options.Contents:
		a.Hint("%s of files", cli.Count(manifest.Contents, "content"))
	case !x.options.Chains:
		a.Hint("contents of files are not included; --contents adds them, and skein backup copies them")
	}
	if x.options.Signer != nil {
		a.Hint("signed by %s", x.options.Signer.Public())
	}
	return absent(manifest.Absent)
}

// absent reports that contents are missing in a file that should have them.
func absent(n int64) error {
	if n == 0 {
		return nil
	}
	return cli.Found("%s of files could not be read: the file names them and has everything else", cli.Count(n, "content"))
}

// createExport returns the writer of an export and the function that finishes it: the
// file gets its name only when it is complete.
func (a *app) createExport(name string) (io.Writer, func(error) error, error) {
	if name == "" {
		return a.Out, func(err error) error { return err }, nil
	}
	if _, err := os.Lstat(name); err == nil {
		return nil, nil, cli.WrongUsage("--output: %s exists; choose another name or remove it", name)
	}
	part, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*") // readable by its owner only
	if err != nil {
		return nil, nil, err
	}
	return part, func(failed error) error {
		if failed == nil {
			failed = part.Sync()
		}
		if failed = errors.Join(failed, part.Close()); failed == nil {
			failed = os.Rename(part.Name(), name)
		}
		if failed != nil {
			_ = os.Remove(part.Name())
		}
		return failed
	}, nil
}

func (a *app) auditImport() *cobra.Command {
	r := &remote{}
	var everyone bool
	var key string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import the commits of an export into this log, after verifying all of it", Args: cobra.ExactArgs(1),
		Long: "Verify a file of skein audit export (- is standard input), and only if all of it is valid write what the log does not\n" +
			"have yet. Threads that exist with the same history are skipped or continued; one that differs is named and not\n" +
			"changed, and the exit code is then 3. A second run adds nothing. Every event names its tenant: a file can only be\n" +
			"imported into the tenant that it was exported from.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.oneOrAll(everyone, nil); err != nil {
				return err
			}
			if err := needKey(key); err != nil {
				return err
			}
			o := audit.ImportOptions{ReadOptions: audit.ReadOptions{Key: key}}
			if !everyone {
				o.Tenant = r.Tenant
			}
			return a.importAudit(cmd.Context(), r, o, args[0])
		},
	}
	r.logFlags(cmd)
	r.orAllTenants(cmd, &everyone, "accept a file of any tenant, or of all")
	cmd.Flags().StringVar(&key, "key", "", "the public NKey of the file's signature")
	return cmd
}

// needKey refuses what is not a public NKey.
func needKey(key string) error {
	if key != "" && !audit.ValidKey(key) {
		return cli.WrongUsage("--key: %.60q is not a public NKey", key)
	}
	return nil
}

// openExport returns a file that can be read twice: standard input is copied first.
func (a *app) openExport(name string) (io.ReadSeeker, func(), error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		return f, func() { _ = f.Close() }, nil
	}
	f, err := os.CreateTemp("", "skein-import-*") // readable by its owner only
	if err != nil {
		return nil, nil, fmt.Errorf("create a file for standard input: %w", err)
	}
	gone := func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	if _, err = io.Copy(f, a.In); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		gone()
		return nil, nil, fmt.Errorf("copy standard input: %w", err)
	}
	return f, gone, nil
}

func (a *app) importAudit(ctx context.Context, r *remote, o audit.ImportOptions, name string) error {
	file, closeFile, err := a.openExport(name)
	if err != nil {
		return err
	}
	defer closeFile()
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	validator, err := schema.New()
	if err != nil {
		return err
	}
	bar := a.Progress()
	o.Progress = auditing(bar)
	var differences []error
	o.Differs = func(d audit.Difference) {
		if r.JSON {
			differences = append(differences, a.PrintJSON(d))
			return
		}
		_, err := fmt.Fprintln(a.Out, eventtext.Printable(d.String(), false))
		differences = append(differences, err)
	}
	sum, err := audit.Import(ctx, log, validator, file, o)
	bar.Clear()
	if err = errors.Join(err, errors.Join(differences...)); err != nil {
		return fileFailed(err)
	}
	a.warnUnknownSigner(sum.Key, o.Key)
	if r.JSON {
		err = a.PrintJSON(sum)
	} else {
		_, err = fmt.Fprintf(a.Out, "%d new, %d continued, %d unchanged, %d that differ; %s written\n",
			sum.Imported, sum.Continued, sum.Unchanged, sum.Different, cli.Count(sum.Commits, "commit"))
		if sum.Contents+sum.Absent > 0 {
			a.Hint("%s of files written; the file lacks %d", cli.Count(sum.Contents, "content"), sum.Absent)
		}
	}
	if err == nil && sum.Different > 0 {
		err = cli.Found("%d threads of the file have another history here, and were not changed", sum.Different)
	}
	return err
}

// warnUnknownSigner warns about a file whose signer is not known, if no key was given.
func (a *app) warnUnknownSigner(signer, key string) {
	switch {
	case key != "":
	case signer == "":
		a.Hint("warning: the file is not signed; anyone may have written it")
	default:
		a.Hint("warning: the file is signed by %s; use --key to accept no other signer", signer)
	}
}

// fileFailed returns the refusal of a file with its own code.
func fileFailed(err error) error {
	var refused *audit.FileError
	if errors.As(err, &refused) {
		return cli.Failed("bad_file", refused.Error())
	}
	return err
}

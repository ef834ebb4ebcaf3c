package user

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) filesCommand() *cobra.Command {
	return cli.Group("files", "Manage the files of threads",
		a.filesPut(), a.filesCat(), a.filesGet(), a.filesList(), a.filesRemove(), a.filesMkdir(), a.filesStat(),
		a.filesGrep(), a.filesFind(), a.filesUsage(),
	)
}

// onFiles returns a command on the files of its first argument, a thread.
func onFiles(use, short string, args cobra.PositionalArgs, run func(context.Context, *cli.Remote, *client.Files, []string) error) *cobra.Command {
	return reading(use, short, args, func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
		return run(ctx, r, c.Files(args[0]), args[1:])
	})
}

func (a *app) filesPut() *cobra.Command {
	var o client.WriteFileOptions
	var mimeType, external string
	var metadata jsonFlag
	var size int64
	cmd := onFiles("put THREAD [FILE] PATH", "Write a file: from FILE, from standard input if it is -, or the record of an --external one", cobra.RangeArgs(2, 3),
		func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
			o.Metadata = metadata.value()
			to := args[len(args)-1]
			if external != "" {
				if len(args) != 1 {
					return cli.WrongUsage("an external file has no FILE: files put THREAD PATH --external LOCATION")
				}
				record, err := f.WriteExternalFile(ctx, to, external, size, mimeType, o)
				return a.printRecord(r, record, err)
			}
			if len(args) != 2 {
				return cli.WrongUsage("files put needs THREAD, FILE and PATH")
			}
			from := a.In
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return cli.WrongUsage("%v", err)
				}
				defer file.Close()
				from = file
			}
			bar := a.Progress()
			record, err := f.WriteFileFrom(ctx, to, &progressReader{from, bar, 0}, mimeType, o)
			bar.Clear()
			return a.printRecord(r, record, err)
		})
	fl := cmd.Flags()
	fl.StringVar(&mimeType, "type", "", "media type; default detected from the first bytes")
	fl.StringVar(&external, "external", "", "location of content that Skein does not store")
	fl.Int64Var(&size, "size", 0, "size of an external file, in bytes")
	fl.Var(&metadata, "metadata", "your own fields: a JSON object")
	fl.Int64Var(&o.Width, "width", 0, "width of an image, in pixels")
	fl.Int64Var(&o.Height, "height", 0, "height of an image, in pixels")
	return cmd
}

// progressReader shows the progress of a reader.
type progressReader struct {
	from io.Reader
	bar  *cli.Progress
	n    int64
}

func (c *progressReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	c.bar.Show("%d MB", c.n/1e6)
	return n, err
}

func (a *app) printRecord(r *cli.Remote, record *events.FileRecord, err error) error {
	if err != nil {
		return err
	}
	if r.JSON {
		return a.PrintJSON(record)
	}
	t := a.fileTable()
	t.file(record)
	return t.Flush()
}

func (a *app) fileTable() table { return a.table("SIZE", "CHANGED", "TYPE", "PATH") }

func (t table) file(f *events.FileRecord) {
	at := time.UnixMicro(f.UpdatedAt).In(time.Local).Format("2006-01-02 15:04:05")
	name := eventtext.Printable(f.Path, false)
	if f.IsDirectory && f.Path != events.FileRoot {
		name += "/"
	}
	if f.External {
		name += " -> " + eventtext.Printable(f.Storage, false)
	}
	t.Row(strconv.FormatInt(f.Size, 10), at, eventtext.Printable(f.MimeType, false), name)
}

func (a *app) filesCat() *cobra.Command {
	var version int64
	cmd := onFiles("cat THREAD PATH", "Print a file", cobra.ExactArgs(2), func(ctx context.Context, _ *cli.Remote, f *client.Files, args []string) error {
		_, err := a.copyFile(ctx, f, args[0], version, a.Out)
		return err
	})
	cmd.Flags().Int64Var(&version, "at", 0, "at this version of the thread")
	return cmd
}

// copyFile writes a file's content to to, and returns its size.
func (a *app) copyFile(ctx context.Context, f *client.Files, from string, version int64, to io.Writer) (int64, error) {
	stream, err := f.ReadFileStreamAt(ctx, from, version)
	if err != nil {
		return 0, err
	}
	if stream == nil {
		record, err := f.StatFileAt(ctx, from, version)
		if err == nil && record != nil {
			return 0, events.Errorf(events.NotFound, "%s is stored elsewhere: %s", record.Path, record.Storage)
		}
		return 0, events.Missing("file", from)
	}
	var n int64
	for chunk, err := range stream {
		if err != nil {
			return n, err
		}
		if _, err := to.Write(chunk.Data); err != nil {
			return n, err
		}
		n += int64(len(chunk.Data))
	}
	return n, nil
}

func (a *app) filesGet() *cobra.Command {
	var version int64
	cmd := onFiles("get THREAD PATH [FILE]", "Save a file: as FILE, or under its own name in this folder", cobra.RangeArgs(2, 3),
		func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
			to := path.Base(args[0])
			if len(args) == 2 {
				to = args[1]
			}
			if to == "." || to == "/" {
				return cli.WrongUsage("name the file to save to")
			}
			// Under a temporary name first: a partial download is never seen as the
			// file.
			file, err := os.CreateTemp(filepath.Dir(to), ".skein-*")
			if err != nil {
				return cli.WrongUsage("%v", err)
			}
			defer os.Remove(file.Name()) // fails after the rename
			n, err := a.copyFile(ctx, f, args[0], version, file)
			if closing := file.Close(); err == nil {
				err = closing
			}
			if err == nil {
				err = os.Rename(file.Name(), to)
			}
			if err != nil {
				return err
			}
			if r.JSON {
				return a.PrintJSON(struct {
					Path string `json:"path"`
					File string `json:"file"`
					Size int64  `json:"size"`
				}{args[0], to, n})
			}
			a.Hint("%s: %d bytes", eventtext.Printable(to, false), n)
			return nil
		})
	cmd.Flags().Int64Var(&version, "at", 0, "at this version of the thread")
	return cmd
}

func (a *app) filesList() *cobra.Command {
	return onFiles("ls THREAD [PATH]", "List a directory", cobra.RangeArgs(1, 2), func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
		dir := events.FileRoot
		if len(args) == 1 {
			dir = args[0]
		}
		list, err := f.ReaddirFile(ctx, dir)
		if err != nil {
			return err
		}
		t := a.fileTable()
		for i := range list.Entries {
			if r.JSON {
				err = a.PrintJSON(&list.Entries[i])
			} else {
				t.file(&list.Entries[i])
			}
			if err != nil {
				return err
			}
		}
		if r.JSON {
			return nil
		}
		return t.Flush()
	})
}

func (a *app) filesRemove() *cobra.Command {
	var directory bool
	cmd := onFiles("rm THREAD PATH...", "Delete files, or with --dir empty directories; missing ones are no error", cobra.MinimumNArgs(2),
		func(ctx context.Context, _ *cli.Remote, f *client.Files, args []string) error {
			for _, one := range args {
				remove := f.UnlinkFile
				if directory {
					remove = f.RmdirFile
				}
				if err := remove(ctx, one); err != nil {
					return err
				}
			}
			return nil
		})
	cmd.Flags().BoolVar(&directory, "dir", false, "remove directories, which must be empty")
	return cmd
}

func (a *app) filesMkdir() *cobra.Command {
	return onFiles("mkdir THREAD PATH", "Create a directory and its parents", cobra.ExactArgs(2), func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
		record, err := f.MkdirFile(ctx, args[0])
		return a.printRecord(r, record, err)
	})
}

func (a *app) filesStat() *cobra.Command {
	var version int64
	cmd := onFiles("stat THREAD PATH", "Show the record of a file or directory", cobra.ExactArgs(2), func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
		record, err := f.StatFileAt(ctx, args[0], version)
		if err == nil && record == nil {
			err = events.Missing("file", args[0])
		}
		return a.printRecord(r, record, err)
	})
	cmd.Flags().Int64Var(&version, "at", 0, "at this version of the thread")
	return cmd
}

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// system is an operating system and a processor that a release has a program for.
type system struct{ os, arch string }

// systems returns those of .goreleaser.yaml.
func systems(t *testing.T) (all []system) {
	t.Helper()
	build := goreleaser(t).Builds[0]
	for _, name := range build.GOOS {
		for _, arch := range build.GOARCH {
			all = append(all, system{name, arch})
		}
	}
	return all
}

// archive returns the name of a system's archive.
func (s system) archive(t *testing.T) string {
	t.Helper()
	c, format := goreleaser(t).Archives[0], "tar.gz"
	for _, o := range c.Overrides {
		if o.GOOS == s.os {
			format = o.Formats[0]
		}
	}
	return strings.NewReplacer("{{.Version}}", testVersion, "{{.Os}}", s.os, "{{.Arch}}", s.arch).Replace(c.Name) + "." + format
}

// imports returns the processor of a program and what it loads besides itself, for each system's
// format of programs. It fails for a program in another format.
func (s system) imports(t *testing.T, program string) (machine any, loaded []string) {
	t.Helper()
	switch s.os {
	case "linux":
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err = f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				loaded = append(loaded, "an interpreter")
			}
		}
		return f.Machine, loaded
	case "darwin":
		f, err := macho.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err = f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		return f.Cpu, loaded
	case "windows":
		f, err := pe.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, symbol := range symbols {
			_, library, _ := strings.Cut(symbol, ":")
			loaded = append(loaded, library)
		}
		return f.Machine, loaded
	}
	t.Fatalf("no format of programs is known for %s", s.os)
	return nil, nil
}

// The program of each system is one that the system starts: it is for its processor, loads nothing
// that an installation of the system lacks, and has its version. docs/install.md names its archive.
// One program is built for each format; of the rest, each file that a build would read is there.
func testSystems(t *testing.T, b *builder) {
	machines := map[system]any{
		{"linux", "amd64"}: elf.EM_X86_64, {"linux", "arm64"}: elf.EM_AARCH64,
		{"darwin", "amd64"}: macho.CpuAmd64, {"darwin", "arm64"}: macho.CpuArm64,
		{"windows", "amd64"}: uint16(pe.IMAGE_FILE_MACHINE_AMD64), {"windows", "arm64"}: uint16(pe.IMAGE_FILE_MACHINE_ARM64),
	}
	provided := map[string][]string{
		"darwin":  {"/usr/lib/libSystem.B.dylib", "/usr/lib/libresolv.9.dylib", "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation", "/System/Library/Frameworks/Security.framework/Versions/A/Security"},
		"windows": {"kernel32.dll"}, // Go's packages load others of the system's when they need them
	}
	page := installPage(t)
	for _, s := range systems(t) {
		t.Run(s.os+"/"+s.arch, func(t *testing.T) {
			if name := s.archive(t); !strings.Contains(page, "`"+strings.ReplaceAll(name, testVersion, "0.1.0")+"`") {
				t.Errorf("docs/install.md does not name the archive %s", name)
			}
			if !slices.Contains([]system{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}, s) {
				output(t, repository.Root(), []string{"GOWORK=off", "CGO_ENABLED=0", "GOOS=" + s.os, "GOARCH=" + s.arch}, "go", "list", "-deps", "./cmd/skein")
				return
			}
			program := b.releaseFor(t, s)
			machine, loaded := s.imports(t, program)
			if machine != machines[s] {
				t.Errorf("it is for %v, want %v", machine, machines[s])
			}
			for _, library := range loaded {
				if !slices.Contains(provided[s.os], library) {
					t.Errorf("it loads %s", library)
				}
			}
			info, err := buildinfo.ReadFile(program)
			if err != nil || info.Path != product+"/cmd/skein" {
				t.Errorf("it says that it is %+v (%v)", info, err)
			}
			body, err := os.ReadFile(program)
			if err != nil || !bytes.Contains(body, []byte(testVersion)) || !bytes.Contains(body, []byte(testCommit)) {
				t.Errorf("it does not have its version and commit (%v)", err)
			}
		})
	}
}

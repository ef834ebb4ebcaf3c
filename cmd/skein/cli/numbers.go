package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Annotations of flags whose negative values, or whose 0, have a meaning.
const (
	belowZero = "below zero"
	atZero    = "at zero"
)

// MayBeNegative declares that negative values of these flags have a meaning. Of any other flag with
// a number or a duration none is accepted, but the default if that is negative.
func MayBeNegative(f *pflag.FlagSet, names ...string) { annotate(f, belowZero, names) }

// MayBeZero declares that 0 has a meaning for these flags. Any other flag with a number or a
// duration refuses it, but one whose default it is.
func MayBeZero(f *pflag.FlagSet, names ...string) { annotate(f, atZero, names) }

func annotate(f *pflag.FlagSet, what string, names []string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, what, nil); err != nil {
			panic(err) // no such flag: every run of the program would end here
		}
	}
}

// CheckNumber refuses a number that has no meaning for a flag. The error does not name the flag.
func CheckNumber(f *pflag.Flag) error {
	kind, many := strings.CutSuffix(f.Value.Type(), "Slice")
	takes := "a number"
	switch kind {
	case "int", "int64", "float64":
	case "duration":
		takes = "a duration"
	default:
		return nil
	}
	values := []string{f.Value.String()}
	if many {
		values = f.Value.(pflag.SliceValue).GetSlice()
	}
	_, mayBeNegative := f.Annotations[belowZero]
	_, mayBeZero := f.Annotations[atZero]
	mayBeZero = mayBeZero || isZero(f.DefValue)
	for _, v := range values {
		negative, endless := strings.HasPrefix(v, "-"), v == "NaN" || strings.HasSuffix(v, "Inf")
		if v != f.DefValue && (endless || negative && !mayBeNegative || isZero(v) && !mayBeZero) {
			return fmt.Errorf("%s; use %s %s: %s", v, takes, reach(f, mayBeNegative, mayBeZero), f.Usage)
		}
	}
	return nil
}

// reach says which values a flag takes, besides its default.
func reach(f *pflag.Flag, mayBeNegative, mayBeZero bool) string {
	switch {
	case mayBeNegative:
		return "other than 0"
	case !mayBeZero:
		return "above 0"
	case strings.HasPrefix(f.DefValue, "-"):
		return "from " + f.DefValue + " on"
	}
	return "from 0 on"
}

func isZero(value string) bool { return value == "0" || value == "0s" || value == "[]" }

// checkNumbers refuses the numbers and durations without a meaning of a command's flags, on the
// command line and in variables.
func checkNumbers(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name := "--" + f.Name
		if _, fromEnvironment := f.Annotations[fromVariable]; fromEnvironment {
			name = Variable(f.Name)
		}
		if err := CheckNumber(f); err != nil {
			errs = append(errs, WrongUsage("%s: %v", name, err))
		}
	})
	return errors.Join(errs...)
}

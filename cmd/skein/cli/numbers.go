package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// belowZero annotates a flag whose negative values have a meaning.
const belowZero = "below zero"

// MayBeNegative declares that negative values of these flags have a meaning. Of any other flag with
// a number or a duration none is accepted, but the default if that is negative.
func MayBeNegative(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, belowZero, nil); err != nil {
			panic(err) // no such flag: every run of the program would end here
		}
	}
}

// CheckNumber refuses a negative value of a flag for which it has no meaning. The error does not
// name the flag.
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
	if _, may := f.Annotations[belowZero]; may {
		return nil
	}
	values, least := []string{f.Value.String()}, "0"
	if many {
		values = f.Value.(pflag.SliceValue).GetSlice()
	} else if strings.HasPrefix(f.DefValue, "-") {
		least = f.DefValue
	}
	for _, v := range values {
		if v != least && (strings.HasPrefix(v, "-") || v == "NaN") {
			return fmt.Errorf("%s; use %s from %s on: %s", v, takes, least, f.Usage)
		}
	}
	return nil
}

// checkNumbers refuses the negative numbers and durations of a command's flags, on the command line
// and in variables.
func checkNumbers(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name := "--" + f.Name
		if _, fromEnvironment := f.Annotations[fromVariable]; fromEnvironment {
			name = variable(f.Name)
		}
		if err := CheckNumber(f); err != nil {
			errs = append(errs, WrongUsage("%s: %v", name, err))
		}
	})
	return errors.Join(errs...)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// errFindings ends a command that found what it looked for. What there is to say
// has been said on stdout.
var errFindings = exitError{code: 2}

// shared are the flags that every command has.
type shared struct{ region, profile, bus string }

func (s *shared) add(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&s.region, "region", "", "AWS region (default: AWS_REGION, or the profile's)")
	f.StringVar(&s.profile, "profile", "", "AWS profile (default: AWS_PROFILE)")
	f.StringVar(&s.bus, "bus", "elbridge", "the event bus that the rules are on, name or ARN")
}

// operands wants n of them, and says which.
func operands(what string, n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("want %s; got %d", what, len(args))
		}
		return nil
	}
}

// aws is the SDK's configuration, by the flags and else as the AWS CLI finds it.
func (s *shared) aws(ctx context.Context) (aws.Config, error) {
	// What the SDK has to say for itself, such as a connection that it can't use
	// again, is nothing that who asks can act on; errors come back as values.
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithLogger(logging.Nop{})}
	if s.region != "" {
		options = append(options, awsconfig.WithRegion(s.region))
	}
	if s.profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(s.profile))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, err
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("no region: give --region, set AWS_REGION, or a region in the AWS profile")
	}
	return cfg, nil
}

// formats are the values of -o.
var formats = []string{"table", "json", "yaml"}

// outputFlag adds -o with the formats that the command has, the first is the default.
func outputFlag(cmd *cobra.Command, into *string, choices ...string) {
	cmd.Flags().StringVarP(into, "output", "o", choices[0], strings.Join(choices, ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no such flag
	}
}

func checkOutput(output string, choices ...string) error {
	if slices.Contains(choices, output) {
		return nil
	}
	return fmt.Errorf("-o %s: want one of %s", output, strings.Join(choices, ", "))
}

// write writes v as JSON or YAML, or as a table that rows fills in: cells are
// divided by tabs.
func write(out io.Writer, output string, v any, rows func(w io.Writer)) error {
	switch output {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	default:
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		rows(w)
		return w.Flush()
	}
}

// row writes cells of a table; empty ones are shown as a dash.
func row(w io.Writer, cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // the table's writer keeps the error
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/bindingfile"
)

func renderCommand() *cobra.Command {
	var file, output string
	var schema bool
	cmd := &cobra.Command{
		Use: "render [-f bindings.yaml]", Short: "Write the rules of a bindings.yaml for CloudFormation, Terraform or the AWS CLI", Args: cobra.NoArgs,
		Long: `Render writes the EventBridge rules that a bindings.yaml says, for a tool that deploys
them. The comment above a binding becomes the description of its rule. It asks nobody.

Exit codes: 0 rendered, 1 the file has faults, which are told with their lines.`,
		Example: `  elbridge render -f bindings.yaml -o cloudformation > bindings.template.json
  elbridge render -o terraform-json > bindings.tf.json
  elbridge render -o aws-cli | sh
  elbridge render --schema > bindings.schema.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if schema {
				_, err := out.Write(bindingfile.Schema)
				return err
			}
			if err := checkOutput(output, renderFormats()...); err != nil {
				return err
			}
			text, err := render(file, cmd.InOrStdin(), bindingfile.Format(output))
			if err != nil {
				return err
			}
			_, err = out.Write(text)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "bindings.yaml", "the file, - is stdin")
	cmd.Flags().BoolVar(&schema, "schema", false, "write the JSON Schema of the file instead, for editors")
	outputFlag(cmd, &output, renderFormats()...)
	return cmd
}

func renderFormats() []string {
	var out []string
	for _, f := range bindingfile.Formats {
		out = append(out, string(f))
	}
	return out
}

// maxBindings bounds what is read of a bindings.yaml, in bytes.
const maxBindings = 4 << 20

func render(name string, stdin io.Reader, format bindingfile.Format) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := readAll(name, in, maxBindings)
	if err != nil {
		return nil, err
	}
	f, err := bindingfile.Parse(data)
	if err != nil {
		return nil, located(name, err)
	}
	return bindingfile.Render(f, format)
}

// located names the file in each error, as compilers do.
func located(name string, err error) error {
	var out []error
	for _, e := range bindingfile.Errors(err) {
		place := name
		if e.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", name, e.Line, e.Column)
		}
		reason := e.Reason
		if e.Path != "" {
			reason = e.Path + ": " + reason
		}
		out = append(out, fmt.Errorf("%s: %s", place, reason))
	}
	if len(out) == 0 {
		return err
	}
	return errors.Join(out...)
}

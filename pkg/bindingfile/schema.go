package bindingfile

import _ "embed" // the schema

// Schema is the JSON Schema of the format, for editors. Parse checks more than it
// says, and never less.
//
//go:embed bindings.schema.json
var Schema []byte

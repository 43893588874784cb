// Package admission has no code, only tests: they ask a real API server what it
// sends to the webhook under the configuration that pkg/webhook/configuration
// generates, and what it holds back. Matching, conditions and failure policy are
// the API server's; nothing but one of them can say what they do.
package admission

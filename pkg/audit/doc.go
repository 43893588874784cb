// Package audit is the edge to CloudWatch Logs: it reads the events of the bus
// back from a log group that a rule on the bus feeds, each event whole as one
// line of JSON (docs/history.md). What the events mean, others decide.
package audit

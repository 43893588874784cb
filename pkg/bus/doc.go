// Package bus is the edge to EventBridge: it puts events on a bus and looks at
// the bus and its rules. It retries what may pass later and says which entries
// were not accepted; what is lost, and what a rule means, others decide.
package bus

// Package dataplane forwards real connections, as a load balancer does: HTTP by
// request, TCP by connection, to the healthy targets of the groups that a
// listener names.
//
// It knows what [route.Table] says, a propagation delay after it was true. It
// chooses one target and never another one for the same request: what a target
// loses, the client sees. With no healthy target it fails open and uses all
// that are registered. Targets that drain get nothing new; what is under way
// goes on until the target leaves the table.
package dataplane

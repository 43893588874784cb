// Package state is what ELBv2 remembers, and how it changes: target groups,
// their targets, load balancers, listeners, tags. It does no input or output
// and has no clock: every method that needs the time is given it, so that a
// whole life of a target is a test of a few lines.
//
// A target's way:
//
//	RegisterTargets ──► initial ──► healthy ◄──► unhealthy
//	                       ▲           │             │
//	                       │           └──────┬──────┘
//	                       │                  ▼ DeregisterTargets
//	                       └──── again ──── draining ──► gone
//
// A target of a group that no listener forwards to is unused, and so is one in
// a zone that its load balancer doesn't have. Both leave without draining.
//
// [Store.Advance] hands out the health checks that are due and ends the
// deregistration delays that are over; [Store.Observe] takes the results.
// Changes to what a load balancer forwards to go to the Route hook, changes of
// targets to the Change hook; both are called with the store locked, in order.
package state

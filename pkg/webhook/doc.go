// Package webhook watches a cluster's pods as a validating admission webhook and
// puts pod events on a bus. It allows everything, answers before it looks at
// what it was asked, sends nothing for dry runs and never waits for AWS (I11).
// Memory is bounded: review bodies by a budget, unsent events by a queue that
// drops its oldest and counts what it drops (I12). It decides nothing about
// target groups.
package webhook

// Package elb is Elastic Load Balancing (API version 2015-12-01) of the local
// cloud: target groups, targets, application and network load balancers,
// listeners and tags, answered to unmodified SDKs, with true health checks and
// a data plane that forwards real traffic.
//
// It is like AWS in what elbridge depends on: states and reasons of targets,
// draining, all-or-nothing registration, keys of id and port, rules for
// Availability Zones, quotas, rate limits, fail-open, propagation. It differs
// where one machine must:
//
//   - a load balancer is active at once; its DNS name is a literal loopback
//     address of its own, and a listener binds that address and the listener's
//     port;
//   - traffic goes to all enabled zones, as with cross-zone load balancing;
//   - Config.CheckSpeedup makes health checks come faster than the 5 s that the
//     API accepts at least;
//   - listeners are HTTP (application) and TCP (network), target groups HTTP,
//     HTTPS and TCP with ip or instance targets; rules, TLS, UDP and Lambda
//     targets are refused with an error that says so;
//   - attributes for stickiness, slow start, client IP preservation, proxy
//     protocol and logging are kept and shown, and have no effect.
package elb

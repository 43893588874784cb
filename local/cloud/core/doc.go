// Package core is the part of the local cloud that every service shares: it
// checks SigV4 signatures, finds the service and operation that a request is
// for, applies faults, records the call and renders the answer in the
// protocol of the service.
//
// A service implements [Service] and sees [Call]: who calls (account, region,
// principal), what (operation) and the parameters. It returns the result, or
// an [*Error] with the code that AWS would give:
//
//	type Groups struct{ ... }
//
//	func (g *Groups) ServeAWS(ctx context.Context, call *core.Call) (any, error) {
//		switch call.Operation {
//		case "RegisterTargets":
//			arn := call.Params.Get("TargetGroupArn")
//			for _, t := range call.Params.Members("Targets") {
//				id, port := t.Get("Id"), t.Get("Port")
//			}
//			return nil, nil // an empty result
//		}
//		return nil, call.UnknownOperation()
//	}
//
// In the query protocol (elasticloadbalancing, sts) the result is a struct
// that encoding/xml writes as <OperationResult>; lists are [List] fields, so
// that an empty list is still written. In the JSON protocols (events, sqs,
// eks) it is a struct for encoding/json, and [Call.Body] holds the request.
//
// State is kept by [Scope] (account and region). Time is call.Time, and waits
// go through [Clock]. Operations on several entries ask [Call.FailEntry] for
// each, so that partial failures can be provoked.
package core

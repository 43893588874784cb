// Package cloud is the AWS of the local stack: EventBridge, SQS, CloudWatch Logs,
// ELBv2, EKS and STS in one process behind one port, for unmodified SDKs that are
// pointed to it by AWS_ENDPOINT_URL. Signatures are checked; account and region come from
// the access key and the credential scope and are part of every key. Calls are
// recorded, and can be made to fail, through a control API under /_local/.
//
// What it does not do: IAM policies of principals, KMS, quotas of requests per
// second other than ELBv2's, FIFO queues, archives and replays.
package cloud

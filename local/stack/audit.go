package stack

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

// The record of what elbridge does: a log group that a rule of the bus feeds.
const (
	AuditLog  = "/aws/events/elbridge" // EventBridge's own names for log groups begin so
	AuditRule = "elbridge-audit"

	auditARN = "arn:aws:logs:" + Region + ":" + Account + ":log-group:" + AuditLog
	// auditDays is how long the record is kept.
	auditDays = 30
	// auditPattern is all of elbridge's events but the pods', of which there are
	// many and each acts through an event that tells of it.
	auditPattern = `{"source":["elbridge",{"prefix":"elbridge."}],"detail-type":[{"anything-but":["Pod State Change"]}]}`
)

// setUpAudit makes the log group, lets EventBridge write into it, and has it
// written to.
func (a *AWS) setUpAudit(ctx context.Context) error {
	if _, err := a.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: new(AuditLog)}); err != nil {
		return err
	}
	if _, err := a.Logs.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new(AuditLog), RetentionInDays: new(int32(auditDays))}); err != nil {
		return err
	}
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":"TrustEventsToStoreLogEvents","Effect":"Allow",`+
		`"Principal":{"Service":["events.amazonaws.com","delivery.logs.amazonaws.com"]},`+
		`"Action":["logs:CreateLogStream","logs:PutLogEvents"],"Resource":"%s:*"}]}`, auditARN)
	if _, err := a.Logs.PutResourcePolicy(ctx, &cloudwatchlogs.PutResourcePolicyInput{PolicyName: new("elbridge-audit"), PolicyDocument: &policy}); err != nil {
		return err
	}
	return a.forward(ctx, Bus, AuditRule, auditPattern, "", types.Target{Id: new("audit"), Arn: new(auditARN)})
}

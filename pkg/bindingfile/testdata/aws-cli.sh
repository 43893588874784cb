#!/bin/sh
# Bindings of elbridge, written by `elbridge render -o aws-cli`. It can be run again.
set -eu

aws events put-rule --cli-input-json '{
  "Name": "ingress",
  "EventBusName": "elbridge",
  "Description": "Skipper, the ingress proxy: it'\''s what the public load balancer sends to.",
  "State": "ENABLED",
  "EventPattern": "{\"source\":[\"elbridge\"],\"detail-type\":[\"Pod State Change\"],\"detail\":{\"cluster\":[\"prod\"],\"namespace\":[\"ingress\"],\"labels\":{\"application\":[\"skipper-ingress\"]}}}"
}'

aws events put-targets --cli-input-json '{
  "Rule": "ingress",
  "EventBusName": "elbridge",
  "Targets": [
    {
      "Id": "registrar",
      "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar",
      "InputTransformer": {
        "InputTemplate": "{\"binding\":{\"targetGroup\":\"arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/ingress/0123456789abcdef\",\"port\":9999},\"rule\":<aws.events.rule-arn>,\"event\":<aws.events.event.json>}"
      },
      "RetryPolicy": {
        "MaximumEventAgeInSeconds": 900,
        "MaximumRetryAttempts": 185
      },
      "DeadLetterConfig": {
        "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar-dead"
      }
    }
  ]
}' --query FailedEntryCount --output text | grep -qx 0

aws events put-rule --cli-input-json '{
  "Name": "team-a.shop",
  "EventBusName": "elbridge",
  "Description": "The shop'\''s pods, while <they> move & the old ones are drained ${later} %{soon}",
  "State": "DISABLED",
  "EventPattern": "{\"source\":[\"elbridge\"],\"detail-type\":[\"Pod State Change\"],\"detail\":{\"cluster\":[\"prod\",\"prod-2\"],\"namespace\":[{\"prefix\":\"team-a-\"}],\"serviceAccount\":[\"shop\"],\"hostNetwork\":[false],\"owner\":{\"kind\":[\"ReplicaSet\",\"StatefulSet\"]},\"$or\":[{\"labels\":{\"app.kubernetes.io/name\":[\"shop\"],\"tier\":[{\"anything-but\":\"db\"}]}},{\"annotations\":{\"example.com/join\":[\"true\"]}}]}}"
}'

aws events put-targets --cli-input-json '{
  "Rule": "team-a.shop",
  "EventBusName": "elbridge",
  "Targets": [
    {
      "Id": "registrar",
      "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar",
      "InputTransformer": {
        "InputTemplate": "{\"binding\":{\"targetGroup\":{\"tags\":{\"service\":\"shop\",\"stage\":\"1\"}},\"port\":\"http\",\"registerWhen\":\"ContainersReady\",\"minTargets\":3,\"maxRemovalPercent\":10,\"podCIDRs\":[\"10.64.0.0/16\",\"fd00::/64\"],\"mode\":\"observe\",\"foreignTargets\":\"keep\",\"empty\":true,\"availabilityZone\":\"all\",\"roleArn\":\"arn:aws:iam::999988887777:role/elbridge\",\"externalId\":\"it-is:me\",\"readinessGate\":\"elbridge.io/target-healthy\"},\"rule\":<aws.events.rule-arn>,\"event\":<aws.events.event.json>}"
      },
      "RetryPolicy": {
        "MaximumEventAgeInSeconds": 900,
        "MaximumRetryAttempts": 185
      },
      "DeadLetterConfig": {
        "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar-dead"
      }
    }
  ]
}' --query FailedEntryCount --output text | grep -qx 0

aws events put-rule --cli-input-json '{
  "Name": "whole-pattern",
  "EventBusName": "elbridge",
  "State": "ENABLED",
  "EventPattern": "{\"source\":[\"elbridge\"],\"detail-type\":[\"Pod State Change\"],\"detail\":{\"namespace\":[\"raw\"],\"labels\":{\"weight\":[{\"exists\":true}]}}}"
}'

aws events put-targets --cli-input-json '{
  "Rule": "whole-pattern",
  "EventBusName": "elbridge",
  "Targets": [
    {
      "Id": "registrar",
      "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar",
      "InputTransformer": {
        "InputTemplate": "{\"binding\":{\"targetGroup\":{\"name\":\"raw\"}},\"rule\":<aws.events.rule-arn>,\"event\":<aws.events.event.json>}"
      },
      "RetryPolicy": {
        "MaximumEventAgeInSeconds": 900,
        "MaximumRetryAttempts": 185
      },
      "DeadLetterConfig": {
        "Arn": "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar-dead"
      }
    }
  ]
}' --query FailedEntryCount --output text | grep -qx 0

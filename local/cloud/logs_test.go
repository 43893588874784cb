package cloud_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/elbridge/elbridge/local/cloud/core"
)

const logGroup = "/aws/events/elbridge"

func (w *world) group(t *testing.T, name string) {
	t.Helper()
	must[*cloudwatchlogs.CreateLogGroupOutput](t)(w.logs().CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name}))
}

// write puts messages a second apart, the last of them a minute ago.
func (w *world) write(t *testing.T, messages ...string) {
	t.Helper()
	stream := "by-hand"
	_, err := w.logs().CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String(logGroup), LogStreamName: &stream})
	if code(err) != "" && code(err) != "ResourceAlreadyExistsException" {
		t.Fatal(err)
	}
	at := w.Server.Clock.Now().Add(-time.Minute)
	var all []types.InputLogEvent
	for i, m := range messages {
		all = append(all, types.InputLogEvent{Timestamp: aws.Int64(at.Add(time.Duration(i-len(messages)) * time.Second).UnixMilli()), Message: &m})
	}
	must[*cloudwatchlogs.PutLogEventsOutput](t)(w.logs().PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String(logGroup), LogStreamName: &stream, LogEvents: all}))
}

// read follows the pages to the end and says how many there were, and how many
// of them were empty.
func (w *world) read(t *testing.T, in cloudwatchlogs.FilterLogEventsInput) (messages []string, pages, empty int) {
	t.Helper()
	in.LogGroupName = aws.String(logGroup)
	for range 100 {
		out := must[*cloudwatchlogs.FilterLogEventsOutput](t)(w.logs().FilterLogEvents(t.Context(), &in))
		pages++
		if len(out.Events) == 0 {
			empty++
		}
		for _, e := range out.Events {
			messages = append(messages, *e.Message)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return messages, pages, empty
		}
	}
	t.Fatal("the pages never end")
	return nil, 0, 0
}

func TestFilterLogEvents(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.group(t, logGroup)
	now := w.clock.Now()
	w.write(t, `{"n":1,"to":"a"}`, `{"n":2,"to":"b"}`, "no JSON", `{"n":3,"to":"a"}`)
	ago := func(d time.Duration) *int64 { return aws.Int64(now.Add(-d).UnixMilli()) }
	tests := map[string]struct {
		in           cloudwatchlogs.FilterLogEventsInput
		want         string
		pages, empty int
	}{
		"all, from the beginning of time": {cloudwatchlogs.FilterLogEventsInput{}, "1 2 no 3", 2, 1},
		"from shortly before":             {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(10 * time.Minute)}, "1 2 no 3", 1, 0},
		"from long before":                {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(2 * time.Hour)}, "1 2 no 3", 2, 1},
		"newest first":                    {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(2 * time.Hour), StartFromHead: aws.Bool(false)}, "3 no 2 1", 1, 0},
		"newest first, one by one":        {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), StartFromHead: aws.Bool(false), Limit: aws.Int32(1)}, "3 no 2 1", 4, 0},
		"pages of two":                    {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), Limit: aws.Int32(2)}, "1 2 no 3", 2, 0},
		"term":                            {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), FilterPattern: aws.String("JSON")}, "no", 1, 0},
		"JSON":                            {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), FilterPattern: aws.String(`{ $.to = "a" && $.n > 1 }`)}, "3", 1, 0},
		"both ends are within":            {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(63 * time.Second), EndTime: ago(62 * time.Second)}, "2 no", 1, 0},
		"nothing is there":                {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Minute)}, "", 2, 2},
		"of a stream":                     {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), LogStreamNames: []string{"by-hand"}}, "1 2 no 3", 1, 0},
		"of another":                      {cloudwatchlogs.FilterLogEventsInput{StartTime: ago(time.Hour), LogStreamNamePrefix: aws.String("x")}, "", 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			messages, pages, empty := w.read(t, tt.in)
			for i, m := range messages {
				m, _, _ = strings.Cut(strings.TrimPrefix(m, `{"n":`), ",")
				messages[i], _, _ = strings.Cut(m, " ")
			}
			if got := strings.Join(messages, " "); got != tt.want || pages != tt.pages || empty != tt.empty {
				t.Errorf("%q on %d pages, %d of them empty; want %q on %d, %d empty", got, pages, empty, tt.want, tt.pages, tt.empty)
			}
		})
	}
}

// A page ends where enough was looked at, found or not.
func TestFilterLogEventsLooksAtSoMuchAPage(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.group(t, logGroup)
	w.write(t, slices.Repeat([]string{"hay"}, 2500)...)
	w.write(t, "needle")
	messages, pages, empty := w.read(t, cloudwatchlogs.FilterLogEventsInput{FilterPattern: aws.String("needle"), StartTime: aws.Int64(w.clock.Now().Add(-45 * time.Minute).UnixMilli())})
	if len(messages) != 1 || pages != 3 || empty != 2 {
		t.Errorf("%d found on %d pages, %d of them empty", len(messages), pages, empty)
	}
}

func TestLogGroups(t *testing.T) {
	t.Parallel()
	w := start(t)
	for i := range 60 {
		w.group(t, fmt.Sprintf("/g/%02d", i))
	}
	var names []string
	in := &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String("/g/")}
	for {
		out := must[*cloudwatchlogs.DescribeLogGroupsOutput](t)(w.logs().DescribeLogGroups(t.Context(), in))
		for _, g := range out.LogGroups {
			names = append(names, *g.LogGroupName)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	if len(names) != 60 || names[59] != "/g/59" {
		t.Errorf("%d groups: %v", len(names), names)
	}
	others := must[*cloudwatchlogs.DescribeLogGroupsOutput](t)(w.by(other).logs().DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{}))
	if len(others.LogGroups) != 0 {
		t.Errorf("another account sees %d groups", len(others.LogGroups))
	}

	must[*cloudwatchlogs.PutRetentionPolicyOutput](t)(w.logs().PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: aws.String("/g/07"), RetentionInDays: aws.Int32(30)}))
	one := must[*cloudwatchlogs.DescribeLogGroupsOutput](t)(w.logs().DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: aws.String("/g/07")})).LogGroups[0]
	if *one.RetentionInDays != 30 || *one.Arn != "arn:aws:logs:eu-west-1:111122223333:log-group:/g/07:*" || *one.LogGroupArn != strings.TrimSuffix(*one.Arn, ":*") {
		t.Errorf("group %+v", one)
	}
	must[*cloudwatchlogs.DeleteLogGroupOutput](t)(w.logs().DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("/g/07")}))
	if _, err := w.logs().DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("/g/07")}); code(err) != "ResourceNotFoundException" {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestRetentionEndsLogEvents(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.group(t, logGroup)
	w.write(t, "old")
	must[*cloudwatchlogs.PutRetentionPolicyOutput](t)(w.logs().PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: aws.String(logGroup), RetentionInDays: aws.Int32(1)}))
	w.clock.Step(23 * time.Hour)
	if got, _, _ := w.read(t, cloudwatchlogs.FilterLogEventsInput{}); len(got) != 1 {
		t.Errorf("within the day: %v", got)
	}
	w.clock.Step(time.Hour)
	if got, _, _ := w.read(t, cloudwatchlogs.FilterLogEventsInput{}); len(got) != 0 {
		t.Errorf("after the day: %v", got)
	}
}

func TestLogErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.group(t, logGroup)
	w.write(t, "a", "b")
	filter := func(change func(*cloudwatchlogs.FilterLogEventsInput)) error {
		in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String(logGroup)}
		change(in)
		_, err := w.logs().FilterLogEvents(t.Context(), in)
		return err
	}
	first := must[*cloudwatchlogs.FilterLogEventsOutput](t)(w.logs().FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String(logGroup)}))
	create := func(name string) error {
		_, err := w.logs().CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name})
		return err
	}
	retain := func(days int32) error {
		_, err := w.logs().PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: aws.String(logGroup), RetentionInDays: &days})
		return err
	}
	policy := func(document string) error {
		_, err := w.logs().PutResourcePolicy(t.Context(), &cloudwatchlogs.PutResourcePolicyInput{PolicyName: aws.String("p"), PolicyDocument: &document})
		return err
	}
	const arn = "arn:aws:logs:eu-west-1:111122223333:log-group:"
	tests := map[string]struct {
		err  error
		want string
	}{
		"no such group":        {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupName = aws.String("/none") }), "ResourceNotFoundException"},
		"neither name nor ARN": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupName = nil }), "InvalidParameterException"},
		"both":                 {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupIdentifier = aws.String(arn + logGroup) }), "InvalidParameterException"},
		"by ARN": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.LogGroupName, in.LogGroupIdentifier = nil, aws.String(arn+logGroup)
		}), ""},
		"by ARN with a star": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.LogGroupName, in.LogGroupIdentifier = nil, aws.String(arn+logGroup+":*")
		}), "InvalidParameterException"},
		"limit 0":          {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.Limit = aws.Int32(0) }), "InvalidParameterException"},
		"limit 10001":      {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.Limit = aws.Int32(10_001) }), "InvalidParameterException"},
		"bad pattern":      {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = aws.String("10.0.0.1") }), "InvalidParameterException"},
		"token of nowhere": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.NextToken = aws.String("bm9uZQ") }), "InvalidParameterException"},
		"the right token":  {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.NextToken = first.NextToken }), ""},
		"token of another query": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.NextToken, in.FilterPattern = first.NextToken, aws.String("a")
		}), "InvalidParameterException"},
		"backwards from nowhere": {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.StartFromHead = aws.Bool(false) }), "InvalidParameterException"},
		"end before start":       {filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.StartTime, in.EndTime = aws.Int64(2), aws.Int64(1) }), "InvalidParameterException"},
		"group again":            {create(logGroup), "ResourceAlreadyExistsException"},
		"group's name":           {create("a b"), "InvalidParameterException"},
		"reserved name":          {create("aws/x"), "InvalidParameterException"},
		"retention of 2 days":    {retain(2), "InvalidParameterException"},
		"policy":                 {policy(`{"Statement":[]}`), "InvalidParameterException"},
	}
	for name, tt := range tests {
		if code(tt.err) != tt.want {
			t.Errorf("%s: %v, want %s", name, tt.err, tt.want)
		}
	}
	if _, err := w.Server.Faults.Add(core.Fault{Service: "logs", Operation: "FilterLogEvents", Kind: core.FaultThrottle}); err != nil {
		t.Fatal(err)
	}
	if err := filter(func(*cloudwatchlogs.FilterLogEventsInput) {}); code(err) != "ThrottlingException" {
		t.Errorf("throttled: %v", err)
	}
}

func TestGetLogEvents(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.group(t, logGroup)
	w.write(t, "1", "2", "3", "4", "5")
	get := func(token *string, head bool) (string, *cloudwatchlogs.GetLogEventsOutput) {
		out := must[*cloudwatchlogs.GetLogEventsOutput](t)(w.logs().GetLogEvents(t.Context(), &cloudwatchlogs.GetLogEventsInput{
			LogGroupName: aws.String(logGroup), LogStreamName: aws.String("by-hand"), Limit: aws.Int32(2), NextToken: token, StartFromHead: &head}))
		var text string
		for _, e := range out.Events {
			text += *e.Message
		}
		return text, out
	}
	last, a := get(nil, false)
	before, b := get(a.NextBackwardToken, false)
	again, _ := get(b.NextForwardToken, false)
	first, c := get(nil, true)
	second, d := get(c.NextForwardToken, true)
	third, e := get(d.NextForwardToken, true)
	end, f := get(e.NextForwardToken, true)
	if got := strings.Join([]string{last, before, again, first, second, third, end}, " "); got != "45 23 45 12 34 5 " {
		t.Errorf("pages %q", got)
	}
	if *f.NextForwardToken != *e.NextForwardToken {
		t.Error("at the end of the stream the token changes")
	}
}

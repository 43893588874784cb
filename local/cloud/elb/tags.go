package elb

import (
	"strconv"

	"github.com/elbridge/elbridge/local/cloud/core"
)

func resources(p core.Params) ([]string, error) {
	arns := p.Strings("ResourceArns")
	if len(arns) == 0 {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value null at 'resourceArns' failed to satisfy constraint: Member must not be null")
	}
	return arns, checkDescribed("resources", arns)
}

func (s *Service) addTags(call *core.Call) (any, error) {
	arns, err := resources(call.Params)
	if err != nil {
		return nil, err
	}
	more := tags(call.Params)
	if len(more) == 0 {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value '[]' at 'tags' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	return nil, s.store.Tag(call.Scope, arns, more, nil)
}

func (s *Service) removeTags(call *core.Call) (any, error) {
	arns, err := resources(call.Params)
	if err != nil {
		return nil, err
	}
	return nil, s.store.Tag(call.Scope, arns, nil, call.Params.Strings("TagKeys"))
}

func (s *Service) describeTags(call *core.Call) (any, error) {
	arns, err := resources(call.Params)
	if err != nil {
		return nil, err
	}
	all, err := s.store.Tags(call.Scope, arns)
	if err != nil {
		return nil, err
	}
	var out struct {
		TagDescriptions core.List[tagDescriptionShape]
	}
	for i, arn := range arns {
		out.TagDescriptions.Member = append(out.TagDescriptions.Member, tagDescriptionShape{ResourceArn: arn, Tags: tagShapes(all[i])})
	}
	return out, nil
}

func (s *Service) describeAccountLimits(call *core.Call) (any, error) {
	var out struct {
		Limits     core.List[limitShape]
		NextMarker string `xml:",omitempty"`
	}
	all := make([]limitShape, 0, 16)
	for _, l := range s.store.Limits().List() {
		all = append(all, limitShape{l.Name, strconv.Itoa(l.Max)})
	}
	var err error
	out.Limits.Member, out.NextMarker, err = page(call.Params, all, func(l limitShape) string { return l.Name })
	return out, err
}

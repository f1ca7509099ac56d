"""oslo.policy and Ironic's policies, for each line of JSON on standard input; one line of JSON for each.

{"rules": {}, "default": NAME, "callers": [], "targets": []}   the rules by themselves
{"overrides": {}, "options": {}, "checks": [[CALLER, POLICY, TARGET]]}   Ironic's policies with a policy file
{"list": true}   Ironic's policies
"""
import json
import logging
import os
import sys
import tempfile
import warnings

from oslo_policy import _parser
from oslo_policy import opts
from oslo_policy import policy as oslo

from ironic.common import context
from ironic.common import policy
from ironic.conf import CONF

logging.disable(logging.CRITICAL)
warnings.simplefilter('ignore')

FOLDER = tempfile.mkdtemp()
POLICY_FILE = os.path.join(FOLDER, 'policy.yaml')


def result(function):
    try:
        return bool(function())
    except RecursionError:
        return 'RecursionError'
    except Exception as error:
        return type(error).__name__


def language(case):
    enforcer = oslo.Enforcer(CONF, use_conf=False, default_rule=case['default'])
    rules = {name: _parser.parse_rule(rule) for name, rule in case['rules'].items()}
    enforcer.skip_undefined_check = True
    enforcer._need_check_rule = False
    enforcer.rules = oslo.Rules(rules, case['default'])
    return {
        'trees': {name: str(rule) for name, rule in rules.items()},
        'decisions': {
            name: [result(lambda: enforcer.enforce(name, target, dict(caller))) for caller in case['callers'] for target in case['targets']]
            for name in rules
        },
    }


def ironic(case):
    for name, value in case['options'].items():
        section, option = name.split('.')
        CONF.set_override(option, value, None if section == 'DEFAULT' else section)
    with open(POLICY_FILE, 'w') as file:
        json.dump(case['overrides'], file)
    CONF.set_override('policy_file', POLICY_FILE, 'oslo_policy')
    CONF.set_override('policy_dirs', [], 'oslo_policy')
    policy._ENFORCER = None
    policy.init_enforcer()
    enforcer = policy.get_enforcer()
    enforcer.suppress_deprecation_warnings = True

    def check(caller, name, target):
        creds = context.RequestContext(overwrite=False, **caller)
        values = dict(creds.to_policy_values())
        values.update(target)
        return enforcer.enforce(name, values, creds)

    return [result(lambda: check(*one)) for one in case['checks']]


def listed():
    return [
        '\t'.join([
            rule.name, rule.check_str, ','.join(rule.scope_types or []),
            *([rule.deprecated_rule.name, rule.deprecated_rule.check_str] if rule.deprecated_rule else ['', '']),
        ])
        for rule in policy.list_policies()
    ]


CONF([], project='ironic', default_config_files=[])
opts._register(CONF)
for line in sys.stdin:
    case = json.loads(line)
    answer = listed() if 'list' in case else language(case) if 'rules' in case else ironic(case)
    print(json.dumps(answer), flush=True)

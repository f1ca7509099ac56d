"""The commands in a log of ironic-python-agent, for each log (a JSON string) on standard input; one line of JSON each."""
import ast
import json
import re
import sys

COMMAND = re.compile(r'Executing command: (\S+) with args: (\{.*\}) execute_command ')
for line in sys.stdin:
    found = [COMMAND.search(row) for row in json.loads(line).splitlines()]
    print(json.dumps([[match[1], ast.literal_eval(match[2])] for match in found if match], default=str))

"""Renders Ironic's own templates with Ironic's own function: a line [template, values] gives a line [template's text, rendered text]."""
import json
import os
import sys

import ironic
from ironic.common import utils

FOLDER = os.path.join(os.path.dirname(ironic.__file__), 'drivers', 'modules')

for line in sys.stdin:
    name, values = json.loads(line)
    path = os.path.join(FOLDER, name)
    with open(path) as template:
        print(json.dumps([template.read(), utils.render_template(path, values)]))

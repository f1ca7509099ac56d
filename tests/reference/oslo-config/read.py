"""Reads configurations with the real oslo.config and the real Ironic's options.

read.py options: prints the table of all options. read.py syntax: reads cases from standard input, as JSON, and prints their results.
"""
import importlib.metadata
import json
import math
import os
import socket
import sys
import tempfile

from keystoneauth1 import loading
from oslo_config import cfg

import ironic.conf

LIBRARIES = [
    'ironic', 'keystonemiddleware.auth_token', 'keystonemiddleware.audit', 'oslo.cache', 'oslo.concurrency', 'oslo.config', 'oslo.db', 'oslo.log',
    'oslo.messaging', 'oslo.middleware', 'oslo.middleware.basic_auth', 'oslo.middleware.cors', 'oslo.middleware.healthcheck',
    'oslo.middleware.http_proxy_to_wsgi', 'oslo.middleware.sizelimit', 'oslo.middleware.tracing', 'oslo.policy',
    'oslo.service.periodic_task', 'oslo.service.service', 'oslo.service.sslutils', 'oslo.service.wsgi', 'oslo.versionedobjects', 'osprofiler',
]
# Values of the host that records them.
HOST = {'my_ip': '$my_ip', 'host': '$host', 'pybasedir': '$pybasedir', 'tempdir': '$tempdir'}
SERVICES = ['service_catalog', 'neutron', 'glance', 'swift', 'cinder', 'nova', 'keystone_authtoken', 'json_rpc']
PLUGINS = ['password', 'v3password', 'v2password', 'token', 'v3token', 'v3applicationcredential', 'none', 'http_basic']


def found():
    """Yields group, option."""
    points = {point.name: point for point in importlib.metadata.entry_points(group='oslo.config.opts')}
    for name in LIBRARIES:
        for group, options in points[name].load()():
            for option in options:
                yield str(getattr(group, 'name', group) or 'DEFAULT'), option
    conf = ironic.conf.CONF
    for info in conf._opts.values():
        yield 'DEFAULT', info['opt']
    for name, group in conf._groups.items():
        for info in group._opts.values():
            yield name, info['opt']
    for service in SERVICES:
        yield service, loading.get_auth_common_conf_options()[0]
        yield service, loading.get_auth_common_conf_options()[1]
        for plugin in PLUGINS:
            for option in loading.get_auth_plugin_conf_options(plugin):
                yield service, option


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def options():
    table = {}
    for group, option in found():
        kind = option.type
        default = HOST.get(option.dest, option.default) if group == 'DEFAULT' else option.default
        if default == socket.gethostname():
            default = '$host'
        base = os.path.dirname(os.path.dirname(ironic.conf.__file__))
        if isinstance(default, str):
            default = default.replace(base, '$pybasedir').replace(sys.prefix, '$prefix')
        row = {'type': type(kind).__name__, 'default': plain(default)}
        if option.multi:
            row['multi'] = True
        for limit in ('min', 'max'):
            if getattr(kind, limit, None) is not None:
                row[limit] = getattr(kind, limit)
        if getattr(kind, 'choices', None):
            row['choices'] = sorted(str(choice) for choice in kind.choices)
        former = {f'{old.group or group}.{old.name or option.dest}' for old in option.deprecated_opts}
        former = sorted(name for name in former if name != f'{group}.{option.dest}')
        if former:
            row['formerly'] = former
        # Ironic's own definition comes first; plugins may add former names.
        known = table.setdefault(f'{group}.{option.dest}', row)
        names = sorted({*known.get('formerly', []), *former})
        if names:
            known['formerly'] = names
    return {key: table[key] for key in sorted(table)}


REGISTERED = {(group, option.dest): option for group, option in found()}


def read(case):
    conf = cfg.ConfigOpts()
    # Options that plugins need are not set here.
    conf._check_required_opts = lambda namespace=None: None
    for (group, _), option in REGISTERED.items():
        if isinstance(option, (cfg.SubCommandOpt, cfg._ConfigFileOpt, cfg._ConfigDirOpt)) or option.dest == 'config_source':
            continue
        conf.register_opt(option, group=None if group == 'DEFAULT' else group)
    conf.set_default('my_ip', '192.0.2.7')
    conf.set_default('host', 'here')
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index, text in enumerate(case['files']):
            path = os.path.join(folder, f'{index}.conf')
            with open(path, 'wb') as file:
                file.write(text.encode('utf-8', 'surrogatepass') if not case.get('latin') else text.encode('latin-1'))
            paths += ['--config-file', path]
        before = dict(os.environ)
        os.environ.update(case.get('variables', {}))
        try:
            conf(paths, project='ironic')
            return {key: value_of(conf, key) for key in case['options']}
        except (cfg.ConfigFileParseError, UnicodeDecodeError):
            return 'error'
        finally:
            os.environ.clear()
            os.environ.update(before)


def value_of(conf, key):
    group, name = key.split('.', 1)
    try:
        return {'value': plain(conf[name] if group == 'DEFAULT' else conf[group][name])}
    except (cfg.Error, RecursionError):
        return 'error'


if sys.argv[1] == 'options':
    print(json.dumps(options(), indent=0))
else:
    print(json.dumps({case['name']: read(case) for case in json.load(sys.stdin)}, indent=0))

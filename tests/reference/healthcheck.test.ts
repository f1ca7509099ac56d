/** The real middleware gives the expected answers of /healthcheck: each case is sent to the one in the real Ironic's environment. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { programs } from '../lab/support/venv';
import { HEALTH_CASES } from '../support/health-cases';

const ASK = `
import json, sys, webob, webob.dec
from oslo_config import cfg
from oslo_middleware import healthcheck
from oslo_middleware.healthcheck import opts
out = []
for case in json.load(sys.stdin):
    conf = cfg.ConfigOpts()
    conf([], project='x', default_config_files=[])
    conf.register_opts(opts.HEALTHCHECK_OPTS + opts.DISABLE_BY_FILE_OPTS + opts.DISABLE_BY_FILES_OPTS + opts.ENABLE_BY_FILES_OPTS, group='healthcheck')
    for name, value in case.get('options', {}).items():
        conf.set_override(name, value, group='healthcheck')
    inner = webob.dec.wsgify(lambda request: webob.Response(status=404, text='passed on'))
    request = webob.Request.blank('/healthcheck', method=case.get('method', 'GET'), headers=case.get('headers', {}))
    request.environ.update(REMOTE_ADDR=case.get('remote', '127.0.0.1'), SERVER_PORT='6385')
    answer = request.get_response(healthcheck.Healthcheck(inner, conf))
    out.append([answer.status_int, answer.headers.get('Content-Type'), answer.text])
print(json.dumps(out))
`;

it('oslo.middleware returns the expected response for each case of HEALTH_CASES', async () => {
  const python = join(await programs('ironic', ['ironic==39.0.0']), 'python3');
  const { stdout, stderr } = spawnSync(python, ['-c', ASK], { input: JSON.stringify(HEALTH_CASES), encoding: 'utf8', timeout: 60_000 });
  if (stdout === '') throw new Error(stderr);
  const answers = JSON.parse(stdout) as [number, string | null, string][];
  expect(answers.map((answer) => (answer[2] === 'passed on' ? 'passed on' : answer))).toEqual(HEALTH_CASES.map(({ expected }) => expected));
}, 1_800_000);

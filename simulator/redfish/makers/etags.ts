/** Habits with ETags and If-Match. */
import { refuse } from '../protocol/messages';
import type { Around, Asked, Habit } from '../protocol/habits';
import type { ServiceAnswer } from '../protocol/routes';
import { isLoggedIn } from './change';

const withTag = (answer: ServiceAnswer, change: (tag: string) => string | undefined): ServiceAnswer => {
  const { etag, ...others } = answer.headers ?? {};
  const changed = etag === undefined ? undefined : change(etag);
  return etag === undefined ? answer : { ...answer, headers: changed === undefined ? others : { ...others, etag: changed } };
};
const withMatch = (asked: Asked, tag: string | undefined): Asked => ({ ...asked, headers: { ...asked.headers, 'if-match': tag } });
const isPatch = ({ method }: Asked): boolean => method === 'PATCH';
/** Refuses or drops a PATCH without If-Match. */
const demands =
  (missing: ServiceAnswer): Around =>
  async (asked, next, context) =>
    isPatch(asked) && asked.headers['if-match'] === undefined && isLoggedIn(context, asked) ? missing : next(asked);
const shown = (tag: string, ending: string): string => tag.replace(/"$/, `${ending}"`);

export const ETAG_HABITS = {
  'etag-changes-at-read': {
    about: 'The ETag of a resource changes at each read: a write with an older one gets 412.',
    source: 'xcat2/confluent aiohmi/redfish/oem/generic.py; FuturFusion 1040; fwupd 6347',
    around: async (asked, next, { memory, count }) => {
      const key = `tag ${asked.path}`;
      if (asked.method === 'GET')
        return withTag(await next(asked), () => {
          const tag = `"${count('reads')}"`;
          memory.set(key, tag);
          return tag;
        });
      const sent = asked.headers['if-match'];
      if (!isPatch(asked) || sent === undefined || sent === '*') return next(asked);
      return sent === memory.get(key) ? next(withMatch(asked, undefined)) : refuse('PreconditionFailed');
    },
  },
  'etag-demanded': {
    about: 'A PATCH without If-Match gets 428.',
    source: 'NVIDIA/libredfish src/nvidia_viking.rs',
    around: demands(refuse('PreconditionRequired')),
  },
  'etag-demanded-in-silence': {
    about: 'A PATCH without If-Match gets 204, and changes nothing.',
    source: 'xcat2/confluent pull request 274; NVIDIA/libredfish src/nvidia_viking.rs',
    around: demands({ status: 204 }),
  },
  'etag-any-only': {
    about: 'The only accepted If-Match is *: all others get 412.',
    source: 'NVIDIA/libredfish src/nvidia_viking.rs',
    around: async (asked, next) => {
      const sent = asked.headers['if-match'];
      return isPatch(asked) && sent !== undefined && sent !== '*' ? refuse('PreconditionFailed') : next(asked);
    },
  },
  'etag-unseen': {
    about: 'No answer has an ETag.',
    source: 'NVIDIA/libredfish src/nvidia_viking.rs',
    around: async (asked, next) => withTag(await next(asked), () => undefined),
  },
  'etag-gzip': {
    about: 'ETags end in -gzip, with which no If-Match is accepted.',
    source: 'dell/iDRAC-Redfish-Scripting',
    around: async (asked, next) => withTag(await next(asked), (tag) => shown(tag, '-gzip')),
  },
  'etag-bare': {
    about: 'ETags have no quotation marks, and neither has an accepted If-Match.',
    source: 'fujitsu-ansible-irmc-integration plugins/module_utils/irmc.py',
    around: async (asked, next) => {
      const sent = asked.headers['if-match'];
      const quoted = sent?.startsWith('"') ? '"quoted"' : sent === undefined || sent === '*' ? sent : `"${sent}"`;
      return withTag(await next(withMatch(asked, quoted)), (tag) => tag.replaceAll('"', ''));
    },
  },
  'etag-refused-at-actions': {
    about: 'An action with If-Match gets 412.',
    source: 'stmcginnis/gofish pull request 510',
    around: async (asked, next) =>
      asked.method === 'POST' && asked.headers['if-match'] !== undefined ? refuse('PreconditionFailed') : next(asked),
  },
} as const satisfies Readonly<Record<string, Habit>>;

/** The versions of the introspection service, its resources, and its OpenAPI document. */
import { notFound } from '../../model/errors';
import type { Handlers } from './handler';

const linked = (base: string, path: string): object => [{ href: `${base}/${path}`, rel: 'self' }];

export const rootHandlers = {
  showRoot: async ({ base }, { document }) => ({
    status: 200,
    body: { versions: [{ id: `1.${document.max}`, status: 'CURRENT', links: linked(base, 'v1') }] },
  }),
  showVersion: async ({ params: { version }, base }, { document }) => {
    if (version !== 'v1') throw notFound(`Version ${version} not found.`);
    const listed = document.paths.filter(({ operations }) => [...operations.values()].some((operation) => operation.listed !== null));
    return {
      status: 200,
      body: { resources: listed.map(({ segments: [, name] }) => ({ name, links: linked(base, `v1/${name}`) })) },
    };
  },
  // All versions have the same operations. Without our own keys.
  showDocument: async (_, { document }) => ({
    status: 200,
    body: JSON.parse(JSON.stringify(document.source, (key, value: unknown) => (key.startsWith('x-') ? undefined : value))) as object,
  }),
} satisfies Partial<Handlers>;

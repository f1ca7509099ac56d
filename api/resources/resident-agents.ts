/** Agents in deployed systems: their tokens, and what they register. Extensions (docs/kexec.md). */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { Fault, invalidParameter, notFound } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { isSameSecret, newSecret } from '../../model/masks';
import { Refusal } from '../http/errors';
import type { Answer, ApiContext, RequestOf, SomeHandlers } from '../pipeline/handler';
import { nodeOf, onNode } from '../pipeline/node-find';

/** The URL by an IP address and a port, so that nothing but that address is asked. */
function checkedUrl(text: string): string {
  const { protocol, hostname, port, username, password, pathname, search, hash } = URL.canParse(text)
    ? new URL(text)
    : new URL('http://invalid');
  const isPlain = [username, password, search, hash].every((part) => part === '') && pathname === '/';
  const address = hostname.replace(/^\[|\]$/g, '');
  if (protocol !== 'https:' || !isPlain || isIP(address) === 0)
    throw invalidParameter(`url is https://ADDRESS:PORT, not ${JSON.stringify(text)}`);
  return `https://${hostname}:${port === '' ? '443' : port}`;
}
/** The certificate alone, in the usual form. */
function checkedCertificate(text: string): string {
  try {
    return new X509Certificate(text).toString();
  } catch (error) {
    throw invalidParameter('certificate is no certificate in PEM', error);
  }
}

async function register({ params, headers, body }: RequestOf<'registerResidentAgent'>, { store, pushes }: ApiContext): Promise<Answer> {
  const uuid = params.node_ident;
  const token = headers['x-resident-token'];
  const row = isUuid(uuid) && typeof token === 'string' ? await store.residentAgents.find(uuid) : undefined;
  // Without a token, the response does not reveal which nodes exist.
  if (!row || typeof token !== 'string' || !isSameSecret(row.token, token)) throw new Fault('NotAuthorized');
  if (!pushes.mayPush(`resident ${uuid}`)) throw new Refusal(429, 'Too many registrations of this node.', { 'Retry-After': '60' });
  const { url, certificate, version, boot_id } = body;
  const registration = { url: checkedUrl(url), certificate: checkedCertificate(certificate), version, boot_id };
  if (!(await store.residentAgents.register(uuid, row.token, registration))) throw new Fault('NotAuthorized');
  return { status: 204 };
}

export const residentAgentHandlers = {
  registerResidentAgent: register,
  showResidentAgent: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:resident_agent:get');
    const row = await context.store.residentAgents.find(uuid);
    if (!row) throw notFound(`Node ${uuid} has no token for an agent in its deployed system.`);
    const { url, version, boot_id, certificate, seen_at, token_from: from, token_made_at: made_at } = row;
    const fingerprint = certificate === null ? null : new X509Certificate(certificate).fingerprint256;
    return { status: 200, body: { node_uuid: uuid, url, version, boot_id, fingerprint, seen_at, token: { from, made_at } } };
  },
  createResidentToken: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:resident_agent:token');
    const token = newSecret(context.random);
    await context.store.residentAgents.putToken(uuid, token, 'operator');
    return { status: 201, body: { token } };
  },
  deleteResidentToken: onNode(({ uuid }, _, { store }) => store.residentAgents.revoke(uuid)),
} satisfies SomeHandlers;

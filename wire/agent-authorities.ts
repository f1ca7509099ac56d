/** The files that tell a ramdisk the certificate authorities of the API ([agent]api_ca_file). ironic-python-agent reads them too. */
import { readRegularFile } from './authorities';

/** Relative to the root of the ramdisk or of its CD. */
export const AGENT_CA_PATH = 'etc/ironic-python-agent/ironic.crt';

/**
 * @param path of the authorities
 * @returns path → text
 * @throws Error that names the option
 */
export async function readAgentCaFiles(path: string): Promise<Readonly<Record<string, string>>> {
  const pem = await readRegularFile(path).catch((error: unknown) => {
    throw new Error(`[agent]api_ca_file: cannot read ${path}: ${(error as Error).message}`, { cause: error });
  });
  return { [AGENT_CA_PATH]: pem, 'etc/ironic-python-agent.d/ironic-tls.conf': `[DEFAULT]\ncafile = /${AGENT_CA_PATH}\n` };
}

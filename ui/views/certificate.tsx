/** A certificate of erasure: what it says of each disk, its files, and how to check them. */
import { certifiedDisksOf, certificateFilesOf, checksOf } from '../lib/erasures';
import { Head, Scrolled, textOf, useApi } from './shared';

const COLUMNS = ['disk', 'serial', 'what', 'proves', 'seconds', 'instead_of', 'sample'] as const;
const TITLES = ['disk', 'serial', 'method', 'proves', 'seconds', 'seconds of overwriting', 'sample'];

function save(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function Certificate({ uuid, close }: { readonly uuid: string; readonly close: () => void }) {
  const { data, error } = useApi(`v1/erasures/${uuid}`, 0);
  const files = data ? certificateFilesOf(data) : [];
  return (
    <section aria-label="Certificate">
      <h2>Certificate {uuid}</h2>
      {error !== undefined && <p role="alert">{error}</p>}
      {data && (
        <>
          <Scrolled label="Disks of the certificate">
            <table>
              <Head titles={TITLES} />
              <tbody>
                {certifiedDisksOf({ erasures: [data] }).map((disk) => (
                  <tr key={textOf(disk['disk'])}>
                    {COLUMNS.map((name) => (
                      <td key={name}>{textOf(disk[name])}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </Scrolled>
          <p>Signed by the key {textOf(data['key_fingerprint'])}. Save the files, and check them with the key that your site publishes:</p>
          <pre>{checksOf(data).join('\n')}</pre>
        </>
      )}
      <p>
        {files.map(({ name, title, bytes }) => (
          <button key={name} onClick={() => save(name, bytes)}>
            {title}
          </button>
        ))}
        <button onClick={close}>Close</button>
      </p>
    </section>
  );
}

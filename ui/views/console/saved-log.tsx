/** What a machine said on its serial console, also before somebody looked: its end, and the whole of it as a file. */
import { useState } from 'preact/hooks';
import { endOfLog, wholeLog } from '../../lib/console-log';
import { api, messageOf } from '../../state';

const KIB = 1024;

export function SavedLog({ uuid, name }: { readonly uuid: string; readonly name: string }) {
  const [text, setText] = useState<string | null>(null);
  const [notice, setNotice] = useState('');
  const run = async (work: () => Promise<string>): Promise<void> => {
    setNotice('Loading …');
    try {
      setNotice(await work());
    } catch (error) {
      setNotice(messageOf(error));
    }
  };
  const show = (): Promise<void> =>
    run(async () => {
      const { text: end, size } = await endOfLog((path) => api.get(path), uuid);
      setText(end);
      return size === 0 ? 'Nothing is saved.' : `${Math.ceil(size / KIB)} KiB are saved.`;
    });
  const download = (): Promise<void> =>
    run(async () => {
      const url = URL.createObjectURL(new Blob([...(await wholeLog((path) => api.get(path), uuid))], { type: 'text/plain' }));
      Object.assign(document.createElement('a'), { href: url, download: `${name}-console.txt` }).click();
      URL.revokeObjectURL(url);
      return 'The file is in your downloads.';
    });
  return (
    <>
      <p class="bar">
        <button onClick={() => void show()}>{text === null ? 'Saved output' : 'Read again'}</button>
        <button onClick={() => void download()}>Download</button>
        <span role="status">{notice}</span>
      </p>
      {text !== null && text !== '' && (
        <pre class="wide saved-log" tabIndex={0} role="region" aria-label="Saved output">
          {text}
        </pre>
      )}
    </>
  );
}

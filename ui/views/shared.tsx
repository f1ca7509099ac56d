/** Components and functions that several views use. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { JsonObject } from '../../model/json';
import { api, messageOf } from '../state';

interface Result {
  readonly data?: JsonObject;
  readonly error?: string;
}
/** The text in a table's cell for a value of the API. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : JSON.stringify(value);
}
/** A time of the API in the browser's time zone. */
export const timeText = (time: string): string => new Date(time).toLocaleString();
/** Reads `path` again whenever `again` changes. */
export function useApi(path: string, again: unknown): Result {
  const [result, setResult] = useState<Result>({});
  useEffect(() => {
    let isCurrent = true;
    api.get<JsonObject>(path).then(
      (data) => isCurrent && setResult({ data }),
      (error: unknown) => isCurrent && setResult({ error: messageOf(error) }),
    );
    return () => void (isCurrent = false);
  }, [path, again]);
  return result;
}
export const Scrolled = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }) => (
  <div class="wide" tabIndex={0} role="region" aria-label={label}>
    {children}
  </div>
);
export const Head = ({ titles }: { readonly titles: readonly string[] }) => (
  <thead>
    <tr>
      {titles.map((title) => (
        <th key={title} scope="col">
          {title}
        </th>
      ))}
    </tr>
  </thead>
);

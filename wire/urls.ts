/** For base URLs, to which a path with a leading slash is added. The expression takes linear time, however many slashes there are. */
export function withoutEndSlashes(url: string): string;
export function withoutEndSlashes(url: string | null | undefined): string | undefined;
export function withoutEndSlashes(url: string | null | undefined): string | undefined {
  return url?.replace(/(?<!\/)\/+$/, '');
}

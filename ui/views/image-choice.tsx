/** A choice of one of the named images. */
import type { NamedImage } from '../lib/images';
import { useApi } from './shared';

export function ImageChoice({ name, title }: { readonly name: string; readonly title: string }) {
  const { data, error } = useApi('v1/images?limit=1000&sort_key=name', null);
  const images = (data?.['images'] ?? []) as readonly NamedImage[];
  if (error !== undefined) return <p role="alert">The images cannot be read: {error}</p>;
  // Without named images, the dialog has only the field for a URL.
  if (images.length === 0) return null;
  return (
    <label>
      {title}
      <select name={name}>
        <option value="">—</option>
        {images.map((image) => (
          <option key={image.uuid} value={image.uuid}>
            {image.description ? `${image.name}: ${image.description}` : image.name}
          </option>
        ))}
      </select>
      {typeof data?.['next'] === 'string' && <small>The first {images.length} images only. Type the URL of another one.</small>}
    </label>
  );
}

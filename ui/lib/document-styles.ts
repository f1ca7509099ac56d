/**
 * A document whose style elements become constructed style sheets. The Content-Security-Policy of the page allows style sheets that a
 * script constructs, but neither style elements nor style attributes. xterm.js uses both.
 */
const make = (real: Document, name: string): HTMLElement => real.createElementNS('http://www.w3.org/1999/xhtml', name);
function styleElement(real: Document): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = make(real, 'template');
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set: (text: string) => {
      sheet.replaceSync(text);
    },
  });
  Object.defineProperty(element, 'remove', {
    value: () => {
      real.adoptedStyleSheets = real.adoptedStyleSheets.filter((other) => other !== sheet);
      HTMLElement.prototype.remove.call(element);
    },
  });
  real.adoptedStyleSheets = [...real.adoptedStyleSheets, sheet];
  return element;
}
function spanElement(real: Document): HTMLElement {
  const element = make(real, 'span');
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value;
    else HTMLElement.prototype.setAttribute.call(element, name, value);
  };
  return element;
}
const MAKERS: Readonly<Record<string, (real: Document) => HTMLElement>> = { style: styleElement, span: spanElement };

const creatorFor =
  (real: Document) =>
  (name: string): HTMLElement =>
    MAKERS[name]?.(real) ?? make(real, name);

/** For work that uses the real document although it was given another one, as xterm.js 6.0.0 does for the scroll bar. */
export function withPatchedCreateElement(real: Document, work: () => void): void {
  Object.defineProperty(real, 'createElement', { value: creatorFor(real), configurable: true });
  try {
    work();
  } finally {
    Reflect.deleteProperty(real, 'createElement');
  }
}
export function documentWithStyles(real: Document): Document {
  const createElement = creatorFor(real);
  return new Proxy(real, {
    get(target, name) {
      if (name === 'createElement') return createElement;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

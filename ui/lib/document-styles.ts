/**
 * A document whose style elements become style sheets of the document. The Content-Security-Policy of the page allows style sheets that a
 * script makes, but neither style elements nor style attributes; xterm.js uses both.
 */
function styleElement(real: Document): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = real.createElement('template');
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
  const element = real.createElement('span');
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value;
    else HTMLElement.prototype.setAttribute.call(element, name, value);
  };
  return element;
}
const MAKERS: Readonly<Record<string, (real: Document) => HTMLElement>> = { style: styleElement, span: spanElement };

export function documentWithStyles(real: Document): Document {
  const createElement = (name: string): HTMLElement => MAKERS[name]?.(real) ?? real.createElement(name);
  return new Proxy(real, {
    get(target, name) {
      if (name === 'createElement') return createElement;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

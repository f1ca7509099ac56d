/** Debian's Chromium, controlled by puppeteer, with the page of a server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, ElementHandle, Page } from 'puppeteer-core' with { 'resolution-mode': 'import' };

const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const pictures = join(__dirname, '../../../docs/pictures');

/** `import`, because the package has ES modules only. */
const loadPuppeteer = () => import('puppeteer-core');

const PATIENCE_MS = 120_000;
export async function startBrowser(): Promise<Browser> {
  const { default: puppeteer } = await loadPuppeteer();
  // Chromium's sandbox does not work for root; the pages are our own.
  return puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'], headless: true });
}
/** A page whose errors and requests to other hosts are collected. */
export interface WatchedPage {
  readonly page: Page;
  readonly problems: readonly string[];
}
export async function openPage(browser: Pick<Browser, 'newPage'>, url: string): Promise<WatchedPage> {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.setViewport({ width: 1280, height: 800 });
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) problems.push(`a request to ${request.url()}`);
  });
  await page.goto(`${url}/`, { waitUntil: 'domcontentloaded' });
  return { page, problems };
}

const CLICK_TRIES = 20;
/** Clicks the element with this text, as a user finds it. */
export async function clickText(page: Page, text: string, kind = 'button, a, summary'): Promise<void> {
  for (let tries = 1; ; tries++) {
    const found = await elementWithText(page, text, kind);
    try {
      await found.click();
      return;
    } catch (error) {
      // If the page has drawn this part again meanwhile, another element has this text now.
      if (tries === CLICK_TRIES || (await found.evaluate((element) => element.isConnected))) throw error;
    }
  }
}
async function elementWithText(page: Page, text: string, kind: string): Promise<ElementHandle<HTMLElement>> {
  const found = await page.waitForFunction(
    (wanted: string, selector: string) => {
      const all = [...document.querySelectorAll<HTMLElement>(selector)];
      // A dialogue makes everything behind it inert.
      const inDialog = all.filter((element) => element.closest('dialog[open]'));
      return (document.querySelector('dialog[open]') ? inDialog : all).find((element) => element.textContent.trim() === wanted);
    },
    {},
    text,
    kind,
  );
  return found as ElementHandle<HTMLElement>;
}
export const waitForText = async (page: Page, selector: string, text: string): Promise<void> => {
  await page.waitForFunction(
    (where: string, wanted: string) => [...document.querySelectorAll(where)].some((element) => element.textContent.includes(wanted)),
    {},
    selector,
    text,
  );
};
/**
 * @returns the rules that the view violates in the dark theme and in the light one, with the elements. Leaves the page in the light theme.
 */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  const found: string[] = [];
  for (const value of ['dark', 'light']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
    const violations = await page.evaluate(async () => {
      const result = await (window as unknown as { axe: { run(): Promise<AxeResult> } }).axe.run();
      return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 150)).join(' | ')}`);
    });
    found.push(...violations.map((violation) => `${value}: ${violation}`));
  }
  return found;
}
/** With PICTURES=1, takes a picture for the documentation. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['PICTURES'] !== undefined) await page.screenshot({ path: `${pictures}/${name}.png` });
}
interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** The page with one screen, for whoever has its address (`console_info` of a graphical console). */
import { render } from 'preact';
import { tokenScreenUrl } from './lib/screen';
import './page.css';
import { Screen } from './views/console/screen';

const isKnown = tokenScreenUrl(location.href, 'control') !== undefined;
render(
  <main>
    {isKnown ? (
      <Screen uuid={null} csrf="" />
    ) : (
      <p role="alert">This address names no screen: use the address in console_info of the node.</p>
    )}
  </main>,
  document.querySelector('#page')!,
);

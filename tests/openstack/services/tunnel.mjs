// node tunnel.mjs FROM TO: connections from one place to another. A place is HOST:PORT, or the path of a Unix socket, which is the same in
// each network namespace.
import { connect, createServer } from 'node:net';

const [from, to] = process.argv.slice(2).map((place) => {
  if (place.startsWith('/')) return { path: place };
  const [host, port] = place.split(':');
  return { host, port: Number(port) };
});
createServer((near) => {
  const far = connect(to);
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ]) {
    socket.on('error', () => other.destroy());
    socket.pipe(other);
  }
}).listen(from, () => console.log('ready'));

// A name with two addresses, of which one is not routed, over a link with a round trip of 1.2 s: in a network namespace, so
// as root only.

import { execFile, execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'

const delayS = '0.6'
const support = join(import.meta.dirname, '../support')
const link = join(support, 'delayed-link.py')

function mayDelay(): boolean {
  try {
    execFileSync('unshare', ['-n', '-m', 'python3', link, '0', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test.skipIf(!mayDelay())(
  'every connection is made where a round trip takes longer than 250 ms, or names the addresses',
  async () => {
    const hosts = join(await newFolder(), 'hosts')
    // An address for documentation (RFC 3849): the namespace has no route to it.
    await writeFile(
      hosts,
      '127.0.0.1 localhost\n10.9.0.2 far.test\n2001:db8::1 far.test\n10.9.0.2 two.test\nfd09::2 two.test\n',
    )
    const inVain =
      /There was no answer of .*two\.test:1 .*\(tried (10\.9\.0\.2:1|\[fd09::2\]:1) ETIMEDOUT, \S+ ETIMEDOUT\)/
    const run = ['python3', link, delayS, process.execPath, join(support, 'far-name.ts')]
    const started = [`mount --bind ${hosts} /etc/hosts && exec "$@"`, 'sh', ...run]
    const { stdout } = await promisify(execFile)('unshare', ['-n', '-m', 'sh', '-c', ...started])
    expect(JSON.parse(stdout)).toEqual({
      deliver: 'answered',
      throughProxy: expect.stringMatching(/^CONNECT far\.test:/),
      check: 'answered',
      alert: 'answered',
      mail: expect.stringMatching(/^EHLO/),
      mqtt: 'CONNECT',
      ws: 'GET /mqtt HTTP/1.1',
      amqp: expect.stringMatching(/^AMQP/),
      nats: expect.stringMatching(/^CONNECT/),
      mqttInVain: expect.stringMatching(inVain),
      mqttsInVain: expect.stringMatching(inVain),
      amqpInVain: expect.stringMatching(inVain),
      amqpsInVain: expect.stringMatching(inVain),
    })
  },
)

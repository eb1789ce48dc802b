import { describe, expect, test } from 'vitest'
import {
  defaultPortOf,
  listenUrlOf,
  listenUrlText,
} from '../../../../src/ingest/broker/listeners/listen-url.ts'

describe('the URL of a listener', () => {
  test.each([
    ['mqtt://127.0.0.1', 'mqtt://127.0.0.1:1883'],
    ['mqtts://depot.example/', 'mqtts://depot.example:8883'],
    ['mqtt://[::1]:0', 'mqtt://[::1]:0'],
    ['ws://0.0.0.0', 'ws://0.0.0.0:8083/mqtt'],
    ['wss://[fd00::7]', 'wss://[fd00::7]:8084/mqtt'],
    ['ws://0.0.0.0:9001/', 'ws://0.0.0.0:9001/'],
    ['wss://0.0.0.0/a/b-c', 'wss://0.0.0.0:8084/a/b-c'],
  ])('%s is %s', (text, expected) => {
    const url = listenUrlOf(text)
    if (typeof url === 'string') throw new Error(url)
    expect(listenUrlText(url)).toBe(expected)
    expect(url.secure).toBe(url.scheme.endsWith('s') && url.scheme !== 'ws')
    expect(listenUrlOf(expected)).toEqual(url)
  })

  test.each([
    'http://127.0.0.1',
    'mqtt://127.0.0.1/path',
    'ws://127.0.0.1/mqtt?token=1',
    'ws://127.0.0.1/a b',
    'ws://user:word@127.0.0.1/mqtt',
    'wss://',
    'wsss://127.0.0.1',
  ])('is not %s', (text) => {
    expect(listenUrlOf(text)).toMatch(/^must be mqtt:\/\/HOST:PORT, .* found /)
  })

  test('has a port that exists', () => {
    expect(listenUrlOf('ws://127.0.0.1:65536/mqtt')).toBe('must have a port of 0 to 65535, found 65536')
    expect(['mqtt', 'mqtts', 'ws', 'wss', 'toString', undefined].map(defaultPortOf)).toEqual([
      1883, 8883, 8083, 8084, 1883, 1883,
    ])
  })
})

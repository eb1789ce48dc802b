// shared-trial.ts: sources that share topics: which one has a message is judged by its bytes in one way, and by
// what was parsed in the other.

import type { Trial } from './trial.ts'

type Parts = { world: Trial['world']; map: Record<string, unknown>; template: Trial['template'] }

export function sharedTrial({ world, map, template }: Parts): Trial {
  return {
    name: 'shared',
    source: {
      name: 'moving',
      topic: 'n/{kind}/{device}',
      when: 'event == "vp" && gps.satellites > 3 && topic.kind != "y"',
      retained: 'ignore',
      map,
    },
    others: [
      // Parsed always.
      {
        name: 'listed',
        topic: 'n/{kind}/{device}',
        when: 'has(list)',
        each: 'list',
        refuse: [{ when: 'event == 5', reason: 'FIVE', detail: 'An event 5.' }],
        map: { signals: [{ type: 'X', path: 'x' }] },
      },
      {
        name: 'named',
        topic: 'n/#',
        device: { path: 'device' },
        when: 'event in ["stop", 7] || mode == "off"',
        map: { ...map, fields: { mode: { path: 'mode', type: 'text' } } },
      },
      { name: 'rest', topic: 'n/a/{device}', when: 'event != null', map },
    ],
    world: { ...world, table: 'device\n1\ntruck-1\n', devices: { unknown: 'quarantine' } },
    topics: ['n/a/1', 'n/x/1', 'n/y/1', 'n/a/2', 'n/deep/er/1'],
    template: (clock, random) => ({
      ...template(clock, random),
      event: () => random.pick(['vp', 'vp', 'vp', 'stop', 'stop', 7, 5, null, 'other', 'other']),
      mode: () => random.pick(['on', 'off', true, 0, 'on', 'on']),
      list: () => random.pick([null, null, null, null, null, 0, [], [{ x: 1 }], [{ x: 1, event: 5 }], [7]]),
    }),
  }
}

// not-found-yet.ts: mistakes that no seed finds so far, each with what must be drawn or looked at before one does.

/** By the name of the mistake. */
export const notFoundYet: ReadonlyMap<string, string> = new Map([
  [
    'the number of a drained lane is given again',
    'Two rotations, a drained lane that is deleted, a power cut that takes the file of numbers, and one more rotation. Some of 16 seeds with backlogs were near it.',
  ],
  [
    'a stop does not wait for the messages that were read',
    'What waits is taken in meanwhile by itself. The stop must be over before that: few milliseconds, with a slow disk.',
  ],
  [
    'attempts are not counted in the payload',
    'The steps are those of the lane. The number in the payload is a further bound where rules change, which are not drawn.',
  ],
  [
    'the back-offs go on when the endpoint is available',
    'The oracle looks at it (open-conditions.ts). A batch must wait for long when the outage ends, and nothing else. Not in 46 seeds with outages.',
  ],
  [
    'two exchanges take the same message',
    'Two people requeue the same dead letters while a write runs. Not in the first seeds of that theme.',
  ],
])

// How long the tests that repeat something do so. `npm test` repeats enough for each
// assertion to be able to fail; `npm run campaign -- long tests` runs them in full.

/** Whether this run is a campaign: TEST_ARBOR_CAMPAIGN is set. */
export const isCampaign = (process.env.TEST_ARBOR_CAMPAIGN ?? "") !== "";

/**
 * Chooses a number of repetitions, seconds or rows.
 *
 * @param full in a campaign
 * @param everyday in `npm test`
 */
export function chooseScale(full: number, everyday: number): number {
  return isCampaign ? full : everyday;
}

/**
 * Chooses of many checks of the same kind: all of them in a campaign, otherwise one in turn.
 *
 * @param all such as the clients of all protocols
 * @param index a number that grows from check to check, so that each one of `all` comes up as often as the others
 */
export function sample<T>(all: readonly T[], index: number): readonly T[] {
  return isCampaign || all.length === 0 ? all : [all[index % all.length] as T];
}

// The app: one stack, in the account and region of the command line.

import { App, DefaultStackSynthesizer } from "aws-cdk-lib";
import { ShopStack } from "./lib/shop-stack";

const app = new App();
new ShopStack(app, "Shop", {
  // There are no assets: the code of the functions is in your bucket.
  synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }),
});

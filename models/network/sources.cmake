set(network_sources
  network/decoder.cc network/hugging_face.cc network/network.cc network/network_json.cc network/optimizer.cc network/recompute.cc network/shape_inference.cc network/work.cc network/yaml.cc network/zoo.cc
  network/zoo/alexnet.cc network/zoo/bert.cc network/zoo/decoders.cc network/zoo/googlenet.cc network/zoo/gpt2.cc
  network/zoo/inception.cc network/zoo/resnet.cc network/zoo/small.cc network/zoo/vgg.cc)
set(network_headers
  network/decoder.h network/hugging_face.h network/layer.h network/recompute.h network/network.h network/network_json.h network/optimizer.h network/shape.h network/shape_inference.h network/work.h
  network/yaml.h network/zoo.h network/zoo/families.h)
